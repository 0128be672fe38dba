-- claim(KEYS = {..., page id, bucket of table 0, 1, 2, ...},
--       ARGV = {..., radius, min resemblance, bits of a slot, different values of a filled slot,
--               prefix of pages, record, then per table: lowest score, highest score, own score})
--   -> 'new' | 'same' | 'duplicate', either, both, equal, 1 if it is done or else 0, record of the page
-- Judges a page and files it if it is new: atomic, in one round trip; all reads come before any write.
-- What comes first in KEYS, ARGV and the answer: see known.lua.  MAX_COMPARED, MAX_EQUAL and PROBE_LIMIT bound
-- the time that a flood of pages alike can take (dedup/index/contract.py).
local page_id, radius, min_resemblance = KEYS[5], tonumber(ARGV[5]), tonumber(ARGV[6])
local width, values, pages, record = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9], ARGV[10]
local band, bor, bxor, rshift = bit.band, bit.bor, bit.bxor, bit.rshift
local FIRST_TABLE, PER_TABLE, FIRST_ARGUMENT = 6, 3, 11

local function popcount(x)
  x = x - band(rshift(x, 1), 0x55555555)
  x = band(x, 0x33333333) + band(rshift(x, 2), 0x33333333)
  x = band(x + rshift(x, 4), 0x0f0f0f0f)
  x = x + rshift(x, 8)
  return band(x + rshift(x, 16), 0x3f)
end

local function differing_bits(a, b) -- of two whole numbers below 2^53
  local a_low, b_low = a % 4294967296, b % 4294967296
  return popcount(bxor(a_low, b_low)) + popcount(bxor((a - a_low) / 4294967296, (b - b_low) / 4294967296))
end

-- 1 in every lane of `width` bits that is not 0; see dedup.fingerprint.sketch
local lanes = ({
  [2] = function(x) return band(bor(x, rshift(x, 1)), 0x55555555) end,
  [4] = function(x)
    x = bor(x, rshift(x, 1))
    return band(bor(x, rshift(x, 2)), 0x11111111)
  end,
  [8] = function(x)
    x = bor(x, rshift(x, 1))
    x = bor(x, rshift(x, 2))
    return band(bor(x, rshift(x, 4)), 0x01010101)
  end,
})[width]

local function sketch_of(stored) -- and where what follows it begins
  local length, at = struct.unpack(SKETCH_LENGTH, stored, BANDS_AT + BAND * stored:byte(BAND_COUNT_AT))
  return stored:sub(at, at + length - 1), at + length
end

local function id_of(stored)
  local _, behind = sketch_of(stored)
  local length, at = struct.unpack(ID_LENGTH, stored, behind)
  return stored:sub(at, at + length - 1)
end

local function sum_of_pairs(x) -- of the sixteen 2-bit fields of a word
  x = band(x, 0x33333333) + band(rshift(x, 2), 0x33333333)
  x = band(x, 0x0f0f0f0f) + band(rshift(x, 4), 0x0f0f0f0f)
  x = x + rshift(x, 8)
  return band(x + rshift(x, 16), 0xff)
end

local own_id, own_scope = id_of(record), record:sub(SCOPE_AT, SCOPE_END)
local own_sketch = sketch_of(record)
local own_words, own_lanes = {}, {}
local function match_counts(sketch) -- slots filled on either side, on both, on both and equal
  if sketch == own_sketch then return 1, 1, 1 end
  if #own_words == 0 then
    for i = 1, #own_sketch / 4 do
      own_words[i] = struct.unpack('<I4', own_sketch, 4 * i - 3)
      own_lanes[i] = lanes(own_words[i])
    end
  end
  local either, both, differ = 0, 0, 0
  for first = 1, #own_words, 3 do
    local e, f, d = 0, 0, 0 -- lanes of three words add up within 2 bits
    for i = first, math.min(first + 2, #own_words) do
      local theirs = struct.unpack('<I4', sketch, 4 * i - 3)
      local a, b = lanes(theirs), own_lanes[i]
      local filled = band(a, b)
      e, f, d = e + bor(a, b), f + filled, d + band(filled, lanes(bxor(theirs, own_words[i])))
    end
    either, both, differ = either + sum_of_pairs(e), both + sum_of_pairs(f), differ + sum_of_pairs(d)
  end
  return either, both, both - differ
end

local number = redis.call('GET', page_id)
if number then
  local state = state_of(number, pages .. number)
  if state == 'pending' or state == 'dead' then -- rows claim pending, claim dead
    redis.call('HSET', pending, number, run)
    file_for(pages .. number, record:sub(RUN_AT, RUN_END))
  elseif state == 'lost' or state == 'reclaimed' then -- rows claim lost, claim reclaimed
    redis.call('HSET', pending, number, run)
  end
  return answer('same') -- rows claim done, claim safe
end

local others = redis.call('ZCARD', runs) > 1 -- else nobody can be dead
local function casts_shadow(candidate, stored) -- it is pending, reclaimed, done or safe
  local owner = redis.call('HGET', pending, candidate)
  if owner then return is_alive(owner) end
  return not others or not is_dead(as_text(stored:sub(RUN_AT, RUN_END)))
end

local function candidate_record(candidate) -- of a page that casts a shadow, in this scope
  local stored = redis.call('GET', pages .. candidate)
  return stored and stored:sub(SCOPE_AT, SCOPE_END) == own_scope and casts_shadow(candidate, stored) and stored
end

local function probe(table) -- members and scores that share the prefix, and the own score
  local at = FIRST_ARGUMENT + PER_TABLE * table
  local near = redis.call('ZRANGEBYSCORE', KEYS[FIRST_TABLE + table], ARGV[at], ARGV[at + 1],
                          'WITHSCORES', 'LIMIT', 0, PROBE_LIMIT)
  return near, tonumber(ARGV[at + 2])
end

local function duplicate(candidate, either, both, equal, stored)
  local done = 1 - redis.call('HEXISTS', pending, candidate)
  return answer('duplicate', either, both, equal, done, stored)
end

local equal_digests = probe(0)
for i = 1, math.min(#equal_digests, 2 * MAX_EQUAL), 2 do
  local stored = candidate_record(equal_digests[i])
  if stored and id_of(stored) == own_id then return answer('same') end
  if stored and sketch_of(stored) == own_sketch then return duplicate(equal_digests[i], 1, 1, 1, stored) end
end

local shared, found = {}, {} -- shared: in how many tables a candidate was met
for table = 1, #KEYS - FIRST_TABLE do
  local near, own = probe(table)
  for i = 1, #near, 2 do
    local candidate = near[i]
    if shared[candidate] then
      shared[candidate] = shared[candidate] + 1
    else
      local distance = differing_bits(own, tonumber(near[i + 1]))
      if distance <= radius then
        shared[candidate] = 1
        found[#found + 1] = {distance, tonumber(candidate), candidate}
      end
    end
  end
end
table.sort(found, function(a, b)
  if a[1] ~= b[1] then return a[1] < b[1] end
  if radius == 0 and shared[a[3]] ~= shared[b[3]] then return shared[a[3]] > shared[b[3]] end
  return a[2] < b[2]
end)

local best
for i = 1, math.min(#found, MAX_COMPARED) do
  local distance, candidate = found[i][1], found[i][2]
  if best and best.distance < distance then break end
  local stored = candidate_record(found[i][3])
  if stored then
    if id_of(stored) == own_id then return answer('same') end
    local either, both, equal = match_counts(sketch_of(stored))
    local resemblance = either == 0 and 1 or math.max(0, (values * equal - both) / ((values - 1) * either))
    if resemblance >= min_resemblance and (not best or resemblance > best.resemblance
        or (resemblance == best.resemblance and candidate < best.candidate)) then
      best = {distance = distance, resemblance = resemblance, candidate = candidate,
              reply = duplicate(found[i][3], either, both, equal, stored)}
    end
  end
end
if best then return best.reply end

number = redis.call('INCR', sequence) -- row claim absent
last = number
redis.call('SET', page_id, number)
redis.call('SET', pages .. number, record)
redis.call('HSET', pending, number, run)
for table = 0, #KEYS - FIRST_TABLE do
  redis.call('ZADD', KEYS[FIRST_TABLE + table], ARGV[FIRST_ARGUMENT + PER_TABLE * table + 2], number)
end
return answer('new')
