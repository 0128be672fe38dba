-- renew(KEYS = {...}, ARGV = {..., lease in ms}) -> 1 or 0
-- What comes first: see known.lua; the keys are described in claim.lua.
-- Prolongs the lease of a run, by this server's clock; a lease of 0 ends it.
if ARGV[5] == '0' then return answer(redis.call('ZREM', runs, run)) end
local clock = redis.call('TIME')
return answer(redis.call('ZADD', runs, clock[1] * 1000 + math.floor(clock[2] / 1000) + ARGV[5], run))
