-- claim(KEYS = {..., page id, bucket of table 0, 1, 2, ...},
--       ARGV = {..., radius, min resemblance, bits of a slot, different values of a filled slot,
--               prefix of pages, record, then per table: lowest score, highest score, own score,
--               then, where what is a page's own has to match: min own, shingles, filled slots,
--               what its heading and its address say, mask of slots outside marked chrome, own host,
--               how many hosts may be asked for, then per host: name, pages, mask of slots that are own if
--               they are equal, and if they are not ('' if it is not known), 1 if the heading tells or else 0})
--   -> 'new' | 'same' | 'duplicate', either, both, equal, 1 if it is done or else 0, record of the page, and
--      the five counts of its own slots | 'hosts', name, name, ...
-- Judges a page and files it if it is new: atomic, in one round trip; all reads come before any write.  If the
-- verdict depends on hosts that the caller didn't bring, it names them, and nothing is judged or written.
-- What comes first in KEYS, ARGV and the answer: see known.lua.  MAX_COMPARED, MAX_EQUAL and PROBE_LIMIT bound
-- the time that a flood of pages alike can take (dedup/index/contract.py).
local page_id, radius, min_resemblance = KEYS[5], tonumber(ARGV[5]), tonumber(ARGV[6])
local values, pages, record = tonumber(ARGV[8]), ARGV[9], ARGV[10]
local FIRST_TABLE, PER_TABLE, FIRST_ARGUMENT, OF_OWN, PER_HOST = 6, 3, 11, 7, 5

local function sketch_of(stored) -- and where what follows it begins
  local length, at = struct.unpack(SKETCH_LENGTH, stored, BANDS_AT + BAND * stored:byte(BAND_COUNT_AT))
  return stored:sub(at, at + length - 1), at + length
end

local function id_of(stored) -- and where what follows it begins, the URL
  local _, behind = sketch_of(stored)
  local length, at = struct.unpack(ID_LENGTH, stored, behind)
  return stored:sub(at, at + length - 1), at + length
end

local function url_of(stored)
  local _, behind = id_of(stored)
  return stored:sub(behind)
end

local own_id, own_scope = id_of(record), record:sub(SCOPE_AT, SCOPE_END)
local own_sketch = sketch_of(record)
local own_words, own_lanes
local function match(sketch) -- slots filled on either side, on both, on both and equal; lanes: filled there, equal
  if not own_words then own_words, own_lanes = in_lanes(own_sketch) end
  if sketch == own_sketch then return 1, 1, 1, own_lanes, own_lanes end
  local words = {struct.unpack('<' .. string.rep('I4', #own_words), sketch)}
  local either, both, equal, there, alike = 0, 0, 0, {}, {}
  for first = 1, #own_words, 3 do
    local e, f, s = 0, 0, 0 -- lanes of three words add up within 2 bits
    for i = first, math.min(first + 2, #own_words) do
      local theirs = words[i]
      local a, b = lanes(theirs), own_lanes[i]
      local filled = band(a, b)
      local same = filled - band(filled, lanes(bxor(theirs, own_words[i]))) -- of lanes, faster than bnot
      e, f, s = e + a + b - filled, f + filled, s + same
      there[i], alike[i] = a, same
    end
    either, both, equal = either + sum_of_pairs(e), both + sum_of_pairs(f), equal + sum_of_pairs(s)
  end
  return either, both, equal, there, alike
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

local function duplicate(candidate, either, both, equal, stored, counts)
  local done = 1 - redis.call('HEXISTS', pending, candidate)
  return answer('duplicate', either, both, equal, done, stored, unpack(counts or {}))
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

local OWN = FIRST_ARGUMENT + PER_TABLE * (#KEYS - FIRST_TABLE + 1)
local own, views, asked, lacking
if ARGV[OWN] then -- what was brought of the page's own and of hosts
  own, views, asked, lacking = called(record), {}, {}, {}
  own.min, own.shingles, own.filled = tonumber(ARGV[OWN]), tonumber(ARGV[OWN + 1]), tonumber(ARGV[OWN + 2])
  own.said, own.host, own.asks = ARGV[OWN + 3], ARGV[OWN + 5], tonumber(ARGV[OWN + 6])
  for at = OWN + OF_OWN, #ARGV, PER_HOST do views[ARGV[at]] = at end
end

local function view_beside(host) -- by the table of that host or the own one, which has met more pages; nil if unknown
  local at, others = views[own.host], views[host]
  if others and tonumber(ARGV[others + 1]) >= tonumber(ARGV[at + 1]) then at = others end
  if #ARGV[at + 2] == 0 then return nil end
  own.main = own.main or words_of(ARGV[OWN + 4])
  own[at] = own[at] or {if_equal = words_of(ARGV[at + 2]), if_new = words_of(ARGV[at + 3]),
                        heading_tells = ARGV[at + 4] == '1'}
  return own[at]
end

local function is_near(stored, names, filled, same) -- whether the page's own matches, too, and the counts
  if not own then return true end
  local host = host_of(url_of(stored))
  if not views[host] and own.asks > 0 then
    if not asked[host] and #lacking < own.asks then asked[host], lacking[#lacking + 1] = true, host end
    return false
  end
  local view = view_beside(host)
  if not view then return host ~= own.host and is_mirror(own, names) end
  if is_other_name(own, names) then return false end
  local counts = own_counts(own, filled, same, view)
  return suffices(own, names, counts, view, values), counts
end

local best
for i = 1, math.min(#found, MAX_COMPARED) do
  local distance, candidate = found[i][1], found[i][2]
  if best and best.distance < distance then break end
  local stored = candidate_record(found[i][3])
  if stored then
    if id_of(stored) == own_id then return answer('same') end
    local either, both, equal, filled, same = match((sketch_of(stored)))
    local resemblance = either == 0 and 1 or math.max(0, (values * equal - both) / ((values - 1) * either))
    if resemblance >= min_resemblance and (not best or resemblance > best.resemblance
        or (resemblance == best.resemblance and candidate < best.candidate)) then
      local near, counts = is_near(stored, own and called(stored), filled, same)
      if near then
        best = {distance = distance, resemblance = resemblance, candidate = candidate,
                reply = duplicate(found[i][3], either, both, equal, stored, counts)}
      end
    end
  end
end
if lacking and #lacking > 0 then return answer('hosts', unpack(lacking)) end
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
