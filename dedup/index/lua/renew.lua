-- renew(KEYS = {runs}, ARGV = {run, lease in ms}) -> 1 or 0
-- Prolongs the lease of a run, by this server's clock; a lease of 0 ends it.  The keys: see claim.lua.
if ARGV[2] == '0' then return redis.call('ZREM', KEYS[1], ARGV[1]) end
local clock = redis.call('TIME')
return redis.call('ZADD', KEYS[1], clock[1] * 1000 + math.floor(clock[2] / 1000) + ARGV[2], ARGV[1])
