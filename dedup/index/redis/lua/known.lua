-- Stands before the scripts that work on an index which the caller has opened; before it stands the layout of
-- a record (dedup/index/redis/record.py).  The keys are described in dedup/index/redis/keys.py.
-- KEYS = {header, sequence, runs, pending, ...}, ARGV = {digest of the header, number, nonce, run, ...}; to the run belong
-- its lease in ms, and the last number that had been given out when it began
--   -> {nonce, last number given out, then what the verb answers, or 'gone', or 'older'}
-- An index that was emptied, replaced or set back to an earlier state is never taken for the one that the
-- caller knows: by its header, and by the number, the highest that the caller has seen given out.  confirm and
-- release also take the next number, and count it as released: so a server that has lost one of them is recognised as older.  The nonce
-- ties an answer to its question.  The types of all keys are checked before anything is written.
--
-- The scripts carry out the rows of docs/lifecycle.md, and name them.
local header, sequence, runs, pending = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local nonce, run, lease, began = tonumber(ARGV[3]), ARGV[4]:match('^(%x+) (%d+) (%d+)$')
lease, began = tonumber(lease), tonumber(began)
local last = tonumber(redis.call('GET', sequence) or -1)
redis.call('HLEN', pending)
redis.call('ZCARD', runs)

local function answer(...) return {nonce, last, ...} end

local function take_number_for_change(released) -- and gives it back
  last = redis.call('INCR', sequence)
  redis.call('INCR', released)
end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- In `runs` there is when the lease of a run ends, or, with a minus, the number that it took when it finished.  A run
-- dies when its lease runs out: rows die pending, die done, die reclaimed.  A lease that would last for longer than any
-- is of a time before the clock was set back, and has run out.
local ends = {}
local function end_of(other)
  if ends[other] == nil then ends[other] = tonumber(redis.call('ZSCORE', runs, other) or 0) end
  return ends[other]
end

local CRAWL = 16 -- digits of a run that are those of its crawl: see dedup/index/lifecycle.py
local crawl = run:sub(1, CRAWL) .. string.rep('0', #run - CRAWL)

local function is_alive(other)
  return other == run or other == crawl or (end_of(other) > now and end_of(other) <= now + lease)
end

local function has_died(other) -- it has never been closed: what it has handed over may be lost
  return end_of(other) > 0 and not is_alive(other)
end

local function has_finished(other) -- since this run began, or in its crawl; if it was earlier: row begin safe
  local since = other:sub(1, CRAWL) == run:sub(1, CRAWL) and 0 or began
  return -end_of(other) > since and -end_of(other) <= last
end

local function as_text(octets) -- of a run, as in `runs` and `pending`
  return string.format(string.rep('%02x', #octets), octets:byte(1, -1))
end

local function filed_by(page) -- the run that a record names
  return as_text(redis.call('GETRANGE', page, RUN_AT - 1, RUN_END - 1))
end

local function file_for(page, octets) -- this run
  redis.call('SETRANGE', page, RUN_AT - 1, octets)
end

local DONE, PENDING = 'd', 'p'
local SHADOWS = {pending = PENDING, reclaimed = PENDING, done = DONE, safe = DONE} -- states in which a page casts one

local function state_of(number, page) -- as dedup/index/lifecycle.py says it
  local owner, filer = redis.call('HGET', pending, number), filed_by(page)
  if filer == '' then return 'absent' end
  if owner and is_alive(owner) then return owner == filer and 'pending' or 'reclaimed' end
  if owner == filer then return 'dead' end
  if is_alive(filer) then return 'done' end
  return has_finished(filer) and 'safe' or 'earlier'
end

if redis.call('HGET', header, 'digest') ~= ARGV[1] then return answer('gone') end
if last < tonumber(ARGV[2]) then return answer('older') end
