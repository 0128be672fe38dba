-- renew(KEYS = {...}, ARGV = {..., lease in ms, or 'finished'}) -> what time it is, in ms
-- What comes first: see known.lua.  Of more than MAX_FINISHED runs that have finished, the oldest are forgotten.
local MAX_FINISHED = 1000
-- Prolongs the lease of a run, by this server's clock, or ends it: 'finished' notes when, row finish done; 0 takes it
-- away, row stop done.
if ARGV[5] == '0' then
  redis.call('ZREM', runs, run)
elseif ARGV[5] == 'finished' then
  redis.call('ZADD', runs, -now, run)
  local old = redis.call('ZRANGEBYSCORE', runs, '-inf', '(0', 'LIMIT', MAX_FINISHED, MAX_FINISHED)
  if #old > 0 then redis.call('ZREM', runs, unpack(old)) end
else
  redis.call('ZADD', runs, now + ARGV[5], run)
end
return answer(now)
