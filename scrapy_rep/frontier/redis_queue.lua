-- What the workers of redis_queue.py change in Redis, one function for each change.
--
-- KEYS: hosts, new hosts, leases, queues, counts, and the one queue that a function uses.
-- ARGV: the name of a function, the worker, and the other arguments of the function.
-- Lists of hosts and queues are in JSON.

local hosts, new, leases, queues, counts, queue = unpack(KEYS)
local worker = ARGV[2]
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function queues_of(host)
    local start = '["' .. host .. '", '
    return redis.call("ZRANGEBYLEX", queues, "[" .. start, "(" .. start .. "~")
end

local function is_ours(host)
    return redis.call("HGET", leases, host) == worker
end

local function lease_host(host, seconds)
    redis.call("ZADD", hosts, now + math.ceil(seconds * 1000), host)
    redis.call("HSET", leases, host, worker)
    redis.call("ZREM", new, host)
end

local function return_host(host, seconds)
    redis.call("HDEL", leases, host)
    if seconds > 0 or #queues_of(host) > 0 then
        redis.call("ZADD", hosts, now + math.ceil(seconds * 1000), host)
    else
        redis.call("ZREM", hosts, host)
    end
end

-- Each request in a queue begins with a number. Of two requests with the same priority, the older
-- one comes first, and two requests that are equal stay two.
local function numbered(request)
    return string.format("%016.0f", redis.call("HINCRBY", counts, "added", 1)) .. request
end

local function without_number(found)
    return found and string.sub(found, 17)
end

local functions = {}

-- Adds a request to the queue `name` of a host. The host is a new one if `is_new` is 1, and if it is
-- not among the others.
function functions.push(host, is_new, name, score, request)
    redis.call("HINCRBY", counts, "size", 1)
    redis.call("ZADD", queue, score, numbered(request))
    redis.call("ZADD", queues, 0, name)
    if is_new == "0" then
        redis.call("ZREM", new, host)
        redis.call("ZADD", hosts, "NX", now, host)
    elseif not redis.call("ZSCORE", hosts, host) then
        redis.call("ZADD", new, "NX", now, host)
    end
end

-- Leases at most `most` hosts whose time has come, but none of those that follow in ARGV. If there
-- are fewer, `most_new` hosts may be new ones; at least `least_new` are. Returns the seconds until
-- the next host may be leased, at most those of the lease, and the queues of the leased hosts.
function functions.lease(seconds, most, most_new, least_new)
    local wait, found, unwanted = tonumber(seconds), {}, {}
    for index = 7, #ARGV do
        unwanted[ARGV[index]] = true
    end

    local function lease_from(key, wanted)
        local leased, place = 0, 0
        while leased < wanted do
            local host, at = unpack(redis.call("ZRANGE", key, place, place, "WITHSCORES"))
            if not host then
                break
            end
            if tonumber(at) > now then
                wait = (tonumber(at) - now) / 1000
                break
            end
            local names = queues_of(host)
            if #names == 0 then
                redis.call("HDEL", leases, host)
                redis.call("ZREM", key, host)
            elseif unwanted[host] then
                place = place + 1
            else
                lease_host(host, seconds)
                leased = leased + 1
                for _, name in ipairs(names) do
                    found[#found + 1] = name
                end
            end
        end
        return leased
    end

    local rest = most - lease_from(hosts, tonumber(most))
    lease_from(new, math.max(math.min(rest, most_new), least_new))
    return cjson.encode({wait, found})
end

-- Leases hosts, or renews their leases. `wanted` has for each host its name, the seconds, and the
-- number of queues that the worker has. Returns the hosts that cannot be leased now, each with the
-- seconds until it can, and the queues of hosts that have more than that number.
function functions.renew(wanted)
    local refused, found = {}, {}
    for _, each in ipairs(cjson.decode(wanted)) do
        local host, seconds, known = unpack(each)
        local left = (redis.call("ZSCORE", hosts, host) or 0) - now
        if left > 0 and not is_ours(host) then
            refused[host] = left / 1000
        else
            lease_host(host, seconds)
            local names = queues_of(host)
            if #names > known then
                for _, name in ipairs(names) do
                    found[#found + 1] = name
                end
            end
        end
    end
    return cjson.encode({refused, found})
end

-- Ends a lease. The host may be leased again after `seconds`.
function functions.release(host, seconds)
    if is_ours(host) then
        return_host(host, tonumber(seconds))
    end
end

-- Returns the queues of all hosts.
function functions.names()
    return cjson.encode(redis.call("ZRANGE", queues, 0, -1))
end

-- Returns the next request of the queue, if there is one.
function functions.peek()
    return {without_number(redis.call("ZRANGE", queue, 0, 0)[1])}
end

-- Removes the next request of the queue `name`. Renews the lease of the host, or returns the host if
-- `seconds` is 0. Returns how many requests are left, and the request if there was one; 0 if the
-- worker does not have the host.
function functions.pop(host, name, seconds)
    if not is_ours(host) then
        return {0}
    end
    local found = redis.call("ZPOPMIN", queue)[1]
    local left = redis.call("ZCARD", queue)
    if found then
        redis.call("HINCRBY", counts, "size", -1)
    end
    if left == 0 then
        redis.call("ZREM", queues, name)
    end
    if seconds == "0" then
        return_host(host, 0)
    else
        lease_host(host, seconds)
    end
    return {left, without_number(found)}
end

return functions[ARGV[1]](ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7])
