-- renew(KEYS = {...}, ARGV = {..., lease in ms, or 'finished'}) -> 1 or 0
-- What comes first: see known.lua.
-- Prolongs the lease of a run, by this server's clock, or ends it: 'finished' takes it away, row finish done; a lease
-- of 0 ms has run out, row stop done.
if ARGV[5] == 'finished' then return answer(redis.call('ZREM', runs, run)) end
return answer(redis.call('ZADD', runs, now + ARGV[5], run))
