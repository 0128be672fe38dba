-- Put before every verb but open.
-- KEYS = {header, sequence, runs, pending, ...}, ARGV = {digest of the header, number, nonce, run, ...}
--   -> {nonce, last number given out, then what the verb answers, or 'gone', or 'older'}
-- An index that was emptied, replaced or set back to an earlier state is never taken for the one that the
-- caller knows: by its header, and by the number, the highest that the caller has seen given out.  The nonce
-- ties an answer to its question.  The types of all keys are checked before anything is written.
local header, sequence, runs, pending = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local nonce, run = ARGV[3], ARGV[4]
local last = tonumber(redis.call('GET', sequence) or -1)
redis.call('HLEN', pending)
redis.call('ZCARD', runs)

local function answer(...) return {nonce, last, ...} end

if redis.call('HGET', header, 'digest') ~= ARGV[1] then return answer('gone') end
if last < tonumber(ARGV[2]) then return answer('older') end
