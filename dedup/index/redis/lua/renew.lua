-- renew(KEYS = {..., released}, ARGV = {..., lease in ms, or 'finished'}) -> the last number given out
-- What comes first: see known.lua.  Of more than MAX_FINISHED runs that have finished, the oldest are forgotten.
local MAX_FINISHED = 1000
-- Prolongs the lease of a run, and of its crawl if that has pages, by this server's clock, or ends it: 'finished' notes
-- when, by a number and no clock, row finish done; 0 takes it away, row stop done.
local both = {run, end_of(crawl) ~= 0 and crawl or nil}
if ARGV[5] == '0' then
  redis.call('ZREM', runs, run)
elseif ARGV[5] == 'finished' then
  redis.call('GET', KEYS[5]) -- only for its type
  take_number_for_change(KEYS[5])
  for _, each in ipairs(both) do redis.call('ZADD', runs, -last, each) end
  local old = redis.call('ZRANGEBYSCORE', runs, '-inf', '(0', 'LIMIT', MAX_FINISHED, MAX_FINISHED)
  if #old > 0 then redis.call('ZREM', runs, unpack(old)) end
else
  for _, each in ipairs(both) do redis.call('ZADD', runs, now + ARGV[5], each) end
end
return answer(last)
