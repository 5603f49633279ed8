-- What the workers of shared_queue.py change in Redis. Each function is one change.
--
-- KEYS: those of shared_queue.KEYS, and the hash of one worker.
-- ARGV: the name of a function, the worker, and the arguments of the function.
--
-- A request has a name: its priority in 4 hexadecimal digits, then its number, whose first character
-- says how long it is. So the names of a host are in the order in which its requests start.

local hosts, new, paced, held, leases, queue, bodies, seen, counts, workers, tries, failed, own = unpack(KEYS)
local call, worker, at = redis.call, ARGV[2], 2
local time = call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local functions = {}

local function arg()
    at = at + 1
    return ARGV[at]
end

local function number()
    return tonumber(arg())
end

-- Until when an operator holds a host; 0 if that is over.
local function held_until(host)
    local found = call("HGET", held, host)
    local milliseconds = found and tonumber(string.match(found, "^%d+")) or 0
    if found and milliseconds <= now then
        call("HDEL", held, host)
    end
    return milliseconds > now and milliseconds or 0
end

local function next_of(host, most)
    return call("ZRANGEBYLEX", queue, "[" .. host .. "\n", "(" .. host .. "\11", "LIMIT", 0, most)
end

-- Lets workers lease a host that has requests, or whose delay of so many milliseconds must pass.
local function offer(host, milliseconds)
    if milliseconds > 0 or #next_of(host, 1) > 0 then
        call("ZADD", hosts, now + math.ceil(milliseconds), host)
    end
end

local function lease_host(host)
    call("HSET", leases, host, worker)
    call("HSET", own, "@" .. host, 1)
end

-- Ends a lease. `delay`: the delay of the host, in milliseconds, or 0.
local function release(host, milliseconds, delay)
    if call("HGET", leases, host) == worker then
        call("HDEL", leases, host)
        call("HDEL", own, "@" .. host)
        if delay > 0 then
            call("HSET", paced, host, delay)
        else
            call("HDEL", paced, host)
        end
        offer(host, milliseconds)
    end
end

local function push(host, is_new, priority, count, body)
    local digits = string.format("%.0f", count)
    local name = priority .. string.char(64 + #digits) .. digits
    call("HSET", bodies, name, body)
    call("ZADD", queue, 0, host .. "\n" .. name)
    if host == "" or call("HEXISTS", leases, host) == 1 then
        return
    elseif is_new == "0" then
        call("ZREM", new, host)
        call("ZADD", hosts, "NX", now, host)
    elseif not call("ZSCORE", hosts, host) then
        call("ZADD", new, "NX", now, host)
    end
end

-- Leases the next requests of a host. Returns the host and their names.
local function take(host, most)
    local members, found = next_of(host, most), {host}
    if #members > 0 then
        call("ZREM", queue, unpack(members))
        for index, member in ipairs(members) do
            found[index + 1] = string.sub(member, #host + 2)
            call("HSET", own, found[index + 1], host)
        end
    end
    return found
end

-- Leases hosts whose time has come until `wanted` requests are leased, at most `most` of a host. One
-- that an operator holds gets the time at which that ends.
-- Returns how many requests, and the milliseconds until the time of the next host.
local function lease_from(key, found, wanted, most)
    local got = 0
    for _ = 1, 1000 do
        local host, ready_at = unpack(call("ZRANGE", key, 0, 0, "WITHSCORES"))
        if not host or got >= wanted then
            break
        elseif tonumber(ready_at) > now then
            return got, ready_at - now
        end
        call("ZREM", key, host)
        local hold_end = held_until(host)
        if hold_end > 0 then
            call("ZADD", key, hold_end, host)
        else
            local names = take(host, call("HEXISTS", paced, host) == 1 and 1 or most)
            if #names > 1 then
                lease_host(host)
                found[#found + 1] = names
                got = got + #names - 1
            end
        end
    end
    return got, 3600000
end

local function give_back(host, name)
    call("HDEL", own, name)
    call("ZADD", queue, 0, host .. "\n" .. name)
end

-- Returns a worker whose lease has ended, or "". If nobody has called for a while, it was Redis that
-- was away: then no lease counts as ended for as long as one lasts.
local function dead_worker(lease)
    local called, back = unpack(call("HMGET", counts, "called", "back"))
    if not called or now - called > 5000 then
        back = now
        call("HSET", counts, "back", now)
    end
    call("HSET", counts, "called", now)
    if now - back <= lease then
        return ""
    end
    return call("ZRANGEBYSCORE", workers, 1, now, "LIMIT", 0, 1)[1] or ""
end

-- Registers a worker for a lease of so many milliseconds. Sets the epoch if there is none, and
-- returns it.
function functions.open()
    call("HSETNX", counts, "epoch", arg())
    call("ZADD", workers, now + number(), worker)
    call("HSETNX", own, "#seq", 0)
    return call("HGET", counts, "epoch")
end

-- Pushes, acknowledges, gives back, releases, and leases, in this order. A call with the number of
-- the last one changes nothing, and gets the same answer.
function functions.sync()
    local epoch, lease, seq = arg(), number(), arg()
    if call("HGET", counts, "epoch") ~= epoch then
        return {"lost"}
    end
    local last = call("HGET", own, "#seq")
    if not last and call("ZSCORE", workers, worker) == "0" then
        return {"expired"}
    elseif last ~= seq and tonumber(last or 0) ~= tonumber(seq) - 1 then
        call("HSET", counts, "resumed", now + 2000)
        return {"behind", tonumber(last or 0)}
    end
    call("ZADD", workers, now + lease, worker)
    local is_new, found, wait = {}, {}, 3600000
    if last == seq then
        is_new, found = unpack(cmsgpack.unpack(call("HGET", own, "#reply")))
    else
        local pushed = number()
        local count = pushed > 0 and call("HINCRBY", counts, "added", pushed) - pushed or 0
        for index = 1, pushed do
            local fingerprint, host, is_unknown, priority, body = arg(), arg(), arg(), arg(), arg()
            is_new[index] = fingerprint == "" and 1 or call("SADD", seen, fingerprint)
            if is_new[index] == 1 then
                push(host, is_unknown, priority, count + index, body)
            end
        end
        for _ = 1, number() do
            local name = arg()
            if call("HDEL", own, name) == 1 then
                call("HDEL", bodies, name)
                call("HDEL", tries, name)
            end
        end
        for _ = 1, number() do
            local name = arg()
            local host = call("HGET", own, name)
            if host then
                give_back(host, name)
            end
        end
        for _ = 1, number() do
            release(arg(), number(), number())
        end
        -- After Redis has come back older, nothing is leased until all workers have noticed that, and
        -- have said which hosts have to wait.
        local is_paused = now < tonumber(call("HGET", counts, "resumed") or 0)
        for _ = 1, number() do
            local host, most = arg(), number()
            if not is_paused and (host == "" or call("HGET", leases, host) == worker) then
                found[#found + 1] = take(host, most)
            end
        end
        local wanted, wanted_new, least_new, most, got = number(), number(), number(), number()
        if is_paused then
            wait = 100
        else
            got, wait = lease_from(hosts, found, wanted, most)
            lease_from(new, found, math.max(math.min(wanted - got, wanted_new), least_new), 1)
        end
        call("HSET", own, "#seq", seq, "#reply", cmsgpack.pack({is_new, found}))
    end
    local leased = {}
    for _, names in ipairs(found) do
        local requests = {}
        for index = 2, #names do
            requests[#requests + 1] = {names[index], call("HGET", bodies, names[index])}
        end
        leased[#leased + 1] = {names[1], requests}
    end
    local stopped = {}
    for _, host in ipairs(call("HKEYS", held)) do
        if held_until(host) > 0 then
            stopped[#stopped + 1] = host
        end
    end
    local sizes = {
        call("ZCARD", queue), call("HLEN", bodies), call("ZCOUNT", hosts, "-inf", now),
        call("ZCOUNT", new, "-inf", now), call("ZLEXCOUNT", queue, "[\n", "(\11"),
        call("ZCOUNT", workers, 1, "+inf"),
    }
    return {"ok", is_new, leased, wait, sizes, stopped, dead_worker(lease)}
end

-- Gives back what a worker has, unless it is another one that is alive: at most about 1,000 entries.
-- A request that has come back more than `most` times goes to the list of those that have failed.
-- Returns how many were given back and how many have failed, and whether there is more.
function functions.recover()
    local most, is_own, returned, lost = number(), arg(), 0, 0
    local score = call("ZSCORE", workers, worker)
    if is_own == "0" and score and tonumber(score) > now then
        return {0, 0, 0}
    end
    local cursor, entries = unpack(call("HSCAN", own, 0, "COUNT", 500))
    for index = 1, #entries, 2 do
        local name, host = entries[index], entries[index + 1]
        local kind = string.sub(name, 1, 1)
        if kind == "@" then
            host = string.sub(name, 2)
            release(host, tonumber(call("HGET", paced, host) or 0), tonumber(call("HGET", paced, host) or 0))
        elseif kind ~= "#" and is_own == "0" and call("HINCRBY", tries, name, 1) > most then
            lost = lost + 1
            call("RPUSH", failed, call("HGET", bodies, name))
            call("HDEL", own, name)
            call("HDEL", bodies, name)
            call("HDEL", tries, name)
        elseif kind ~= "#" then
            returned = returned + 1
            give_back(host, name)
            if host ~= "" and call("HEXISTS", leases, host) == 0 then
                call("ZADD", hosts, "NX", now, host)
            end
        end
    end
    if cursor == "0" then
        call("DEL", own)
        if is_own == "1" then
            call("ZREM", workers, worker)
        else
            call("ZADD", workers, 0, worker)
        end
    end
    return {returned, lost, cursor == "0" and 0 or 1}
end

-- Hosts have to wait, each for so many milliseconds: Redis may have forgotten that.
function functions.postpone()
    for _ = 1, number() do
        local host, milliseconds, delay = arg(), number(), number()
        if delay > 0 then
            call("HSET", paced, host, delay)
        end
        if call("HEXISTS", leases, host) == 0 then
            call("ZREM", new, host)
            call("ZADD", hosts, "GT", now + milliseconds, host)
        end
    end
end

-- Leases a host for a request that is not from the queue. Returns the milliseconds until it can be.
function functions.reserve()
    local host = arg()
    local owner, ready_at = call("HGET", leases, host), call("ZSCORE", hosts, host)
    if owner and owner ~= worker then
        return 1000
    elseif not owner then
        local milliseconds = math.max(tonumber(ready_at or 0), held_until(host)) - now
        if milliseconds > 0 then
            return math.ceil(milliseconds)
        end
    end
    call("ZREM", hosts, host)
    call("ZREM", new, host)
    lease_host(host)
    return 0
end

-- Holds a host for so many milliseconds, or no longer if that is 0. Its worker gives it back with its
-- next call. What else the host waits for, such as a back-off, stays.
function functions.hold()
    local host, milliseconds, reason = arg(), number(), arg()
    local last = held_until(host)
    if milliseconds > 0 then
        call("HSET", held, host, string.format("%.0f %s", now + milliseconds, reason))
    else
        call("HDEL", held, host)
    end
    for _, key in ipairs({hosts, new}) do
        if last > 0 and tonumber(call("ZSCORE", key, host) or 0) == last then
            call("ZADD", key, now, host)
        end
    end
end

-- Removes waiting requests of a host, at most `most`. Returns how many.
function functions.drop()
    local host, most = arg(), number()
    local members = next_of(host, most)
    for _, member in ipairs(members) do
        local name = string.sub(member, #host + 2)
        call("ZREM", queue, member)
        call("HDEL", bodies, name)
        call("HDEL", tries, name)
    end
    return #members
end

return functions[ARGV[1]]()
