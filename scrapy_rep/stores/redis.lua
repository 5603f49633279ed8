-- What redis.py changes in Redis, one function for each change.
--
-- ARGV: the name of a function, and its other arguments. KEYS: all keys that it uses, which are in
-- one slot, so that it also runs on a cluster.
--
-- It uses pcall where a key may have another type, and reads the start of a value only: any program
-- may write to the server, and a script would copy a value of 2 GB.

local function start_of(key)
    return redis.pcall("GETRANGE", key, 0, 63) -- a fence, a space and a token
end

local function fence_of(value)
    local digits = type(value) == "string" and string.match(value, "^%d+") or ""
    return #digits <= 15 and tonumber(digits) or 0
end

local functions = {}

-- KEYS: lease; for a claim also fence, entry. The arguments from `lowest` on are those of a claim:
-- the lowest fence, the seconds that the fence is kept, the index of the last byte.
-- Returns the milliseconds to wait, fence, entry.
function functions.lease(token, milliseconds, maximum, lowest, seconds, last)
    local left = redis.call("PTTL", KEYS[1])
    local holds = left > 0 and left <= tonumber(maximum)
    local granted = start_of(KEYS[1]) == token or not holds
    if granted then
        redis.call("SET", KEYS[1], token, "PX", milliseconds)
        left = 0
    end
    if not KEYS[2] then
        return {left}
    end
    local entry = redis.pcall("GETRANGE", KEYS[3], 0, last)
    local fence = math.max(fence_of(start_of(KEYS[2])), fence_of(entry))
    if granted then
        fence = math.max(fence + 1, tonumber(lowest))
        redis.call("SET", KEYS[2], string.format("%.0f ", fence) .. token, "EX", seconds)
    end
    return {left, string.format("%.0f", fence), type(entry) == "string" and entry or ""}
end

-- KEYS: fence, entry. `fence` may be an empty string. `seconds`: how long the entry is kept.
function functions.put(fence, entry, seconds)
    local stored = fence_of(start_of(KEYS[2]))
    fence = tonumber(fence) or stored
    if fence < stored then
        return 0
    end
    redis.call("SET", KEYS[2], string.format("%.0f ", fence) .. entry, "EX", seconds)
    if fence_of(start_of(KEYS[1])) <= fence then
        redis.call("DEL", KEYS[1])
    end
    return 1
end

-- KEYS: lease. `milliseconds` are those of the delay.
function functions.release(token, milliseconds)
    if start_of(KEYS[1]) ~= token then
        return 0
    end
    if tonumber(milliseconds) > 0 then
        redis.call("SET", KEYS[1], "-", "PX", milliseconds)
    else
        redis.call("DEL", KEYS[1])
    end
    return 1
end

return functions[ARGV[1]](unpack(ARGV, 2))
