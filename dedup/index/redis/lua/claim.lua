-- claim(KEYS = {..., bucket of the page id, buckets of the tables of digests, of main views, and of all others},
--       ARGV = {..., radius, min resemblance, bits of a slot, different values of a filled slot,
--               prefix of pages, record, keys, in how many tables pages are read from buckets that differ in one bit, too,
--               how many bits name a bucket, what the caller found (number, 4 bytes, and distance, 1, of each), last
--               number given out when that was read or '', 1 if that is all or else 0,
--               then, where what is a page's own has to match: min own, shingles, filled slots,
--               what its heading and its address say, mask of slots outside marked chrome, own host,
--               how many hosts may be asked for, 1 if it has data or else 0, then per host: name, pages, mask of
--               slots that are own if they are equal, and if they are not ('' if it is not known), 1 if the heading
--               tells or else 0, 1 if enough of the main view is own or else 0})
-- At the end of KEYS come, if the page was filed with other content, released and the buckets that it is in; at the end
-- of ARGV its number then, and how many keys these are, or '' and 0.
--   -> 'new', 1 if an earlier run has filed this content or else 0, 1 if more pages are like it than were looked at or
--      else 0, number of the page, and if there is any of these, page id of one whose place it takes or '', record of a
--      near page and the five counts of the own slots beside it | 'same', 1 or 0, 1 or 0, as before, number of the page
--      if its claim is this run's now or else 0 | 'duplicate' or, by the main view, 'shown', either, both, equal, 1 if
--      it is done or else 0, record of the page, and the five counts | 'hosts', name, name, ...
--      | 'changed', number of the page, its record
--      | 'many', last number given out, names of the buckets to be read, a line each, their bytes, 4 bytes each
-- Judges a page and files it if it is new: atomic, in one round trip; all reads come before any write.  If the
-- verdict depends on hosts that the caller didn't bring, it names them, and nothing is judged or written; nor is it if
-- the page has changed, and the caller didn't bring the buckets that it has to be taken out of.
--
-- The schema: a page is an entry in one bucket of each table (see tables.lua).  By multi-index hashing (Norouzi,
-- Punjani, Fleet 2012), two simhashes within k bits have one of m blocks in which they differ in no bit, or one.  It
-- is enough to allow for that one bit in k + 1 - m of the tables, whichever these are (Qin et al. 2018): if all of those
-- blocks differed in two bits, and the others in one, that made k + 1.  So the fullest buckets are read alone.  Up to
-- MAX_HERE entries are looked through here; more are left to the caller, who reads them, and calls again with the
-- last number that had been given out: pages that were filed since are compared here.
-- What comes first in KEYS, ARGV and the answer: see known.lua.  MAX_LOOKED, MAX_COMPARED and MAX_EQUAL bound the
-- time that a flood of pages alike can take (dedup/index/contract.py).
local outdated = {}
for i = tonumber(table.remove(ARGV)), 1, -1 do outdated[i] = table.remove(KEYS) end
local outdated_number = tonumber(table.remove(ARGV))
local id_bucket, radius, min_resemblance = KEYS[5], tonumber(ARGV[5]), tonumber(ARGV[6])
local values, pages, record, keys = tonumber(ARGV[8]), ARGV[9], ARGV[10], ARGV[11]
local flipped, bucket_bits, brought, seen = tonumber(ARGV[12]), tonumber(ARGV[13]), ARGV[14], tonumber(ARGV[15])
local FIRST_TABLE, FIRST_NEAR, OF_OWN, PER_HOST = 6, 8, 8, 6
local OWN = 17
local is_all = ARGV[OWN - 1] == '1'
local BATCH = 100 -- records that are read at once

local function places_of(stored) -- where in a record its sketch, its page id and its URL begin, and the last of the id
  local length, sketch_at = struct.unpack(SKETCH_LENGTH, stored, BANDS_AT + BAND * stored:byte(BAND_COUNT_AT))
  local id_length, id_at = struct.unpack(ID_LENGTH, stored, sketch_at + length)
  return sketch_at, id_at, id_at + id_length, sketch_at + length - 1
end

local own_scope = record:sub(SCOPE_AT, SCOPE_END)
local own_sketch_at, own_id_at, own_url_at, own_sketch_end = places_of(record)
local own_sketch, own_id = record:sub(own_sketch_at, own_sketch_end), record:sub(own_id_at, own_url_at - 1)
local own_high, own_low = struct.unpack('>I4I4', record, SIMHASH_AT)
local slots, WORDS = 8 * #own_sketch / width, nil
local own_words, own_lanes
local function unfold() -- the page's sketch, when it is first compared with another
  if own_words then return end
  own_words, own_lanes = in_lanes(own_sketch)
  WORDS = '<' .. string.rep('I4', #own_words)
end

local function sketch_of(stored)
  local first, _, _, last = places_of(stored)
  return stored:sub(first, last)
end

local function id_of(stored)
  local _, first, behind = places_of(stored)
  return stored:sub(first, behind - 1)
end

-- Slots filled on either side, on both, on both and equal; lanes: filled there, equal.  Nil as soon as the resemblance
-- is below the floor, even if all other slots were equal.
local function match(stored, sketch_at, floor)
  local words = {struct.unpack(WORDS, stored, sketch_at)}
  local either, both, equal, there, alike = 0, 0, 0, {}, {}
  local least = floor > 0 and (values - 1) * floor - 1e-9 or -math.huge
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
    local rest = math.max(0, slots - (first + 2) * 32 / width)
    if values * equal - both + (values - 1) * rest < least * (either + rest) then return nil end
  end
  return either, both, equal, there, alike
end

-- Whether the resemblance is below the floor, as is seen from how many slots differ; takes a third of the time of `match`.
local function is_unlike(stored, sketch_at, floor)
  local differing, most = 0, (1 - floor) * slots + 1e-6 -- for errors of rounding
  for first = 1, #own_words - 2, 3 do
    local a, b, c = struct.unpack('<I4I4I4', stored, sketch_at + 4 * (first - 1))
    differing = differing + sum_of_pairs(lanes(bxor(a, own_words[first])) + lanes(bxor(b, own_words[first + 1]))
      + lanes(bxor(c, own_words[first + 2])))
    if differing > most then return true end
  end
  return false
end

local function same_content(stored)
  return stored:sub(DIGEST_AT, DIGEST_END) == record:sub(DIGEST_AT, DIGEST_END)
    and stored:sub(SCOPE_AT, SCOPE_END) == own_scope and sketch_of(stored) == own_sketch
end

local held = {[id_bucket] = redis.call('GET', id_bucket) or ''} -- what is in buckets, where all of it was read
local filed, filed_record
for _, number in ipairs(numbers_of(held[id_bucket], key_at(keys, 0), MAX_EQUAL)) do
  local stored = redis.call('GET', pages .. number)
  if stored and id_of(stored) == own_id then filed, filed_record = number, stored end
end
local was = filed and state_of(filed, pages .. filed)
local unchanged = filed and same_content(filed_record)
if was == 'pending' and unchanged then -- row claim pending
  redis.call('HSET', pending, filed, run)
  file_for(pages .. filed, record:sub(RUN_AT, RUN_END))
  return answer('same', 0, 0, filed)
elseif was == 'reclaimed' and unchanged then -- row claim reclaimed
  redis.call('HSET', pending, filed, run)
  return answer('same', has_died(filed_by(pages .. filed)) and 0 or 1, 0, filed)
elseif was == 'pending' or was == 'reclaimed' or was == 'done' or was == 'safe' then
  return answer('same', 0, 0, 0) -- rows claim done, claim safe
end

local function casts_shadow(candidate, stored) -- it is pending, reclaimed, done or safe
  local owner = redis.call('HGET', pending, candidate)
  if owner and is_alive(owner) then return true end
  local filer = as_text(stored:sub(RUN_AT, RUN_END))
  return owner ~= filer and (is_alive(filer) or has_finished_since(filer))
end

local known, replaced = 0, nil -- whether an earlier run has filed this content; the page of which this takes the place
local function note_earlier(candidate, stored)
  if id_of(stored) == own_id or state_of(candidate, pages .. candidate) ~= 'earlier' then return end
  if same_content(stored) and not has_died(as_text(stored:sub(RUN_AT, RUN_END))) then known = 1 end
  replaced = replaced or id_of(stored)
end

local crowded = 0 -- 1 if more pages are like this one than are looked at
local function equal_in(table, most) -- the numbers of pages with an equal key
  local bucket = KEYS[FIRST_TABLE + table]
  local entries = redis.call('GETRANGE', bucket, 0, MAX_EXACT * ENTRY - 1)
  if #entries < MAX_EXACT * ENTRY then held[bucket] = entries else crowded = 1 end
  return numbers_of(entries, key_at(keys, table + 1), most)
end

local function duplicate(candidate, either, both, equal, stored, counts, word)
  local done = 1 - redis.call('HEXISTS', pending, candidate)
  return answer(word or 'duplicate', either, both, equal, done, stored, unpack(counts or {}))
end

local equal_digests = equal_in(0, MAX_EQUAL + 1)
if #equal_digests > MAX_EQUAL then crowded = 1 end
for i = 1, math.min(#equal_digests, MAX_EQUAL) do
  local candidate = equal_digests[i]
  local stored = candidate ~= filed and redis.call('GET', pages .. candidate)
  if stored and stored:sub(SCOPE_AT, SCOPE_END) == own_scope then
    local shadow = casts_shadow(candidate, stored)
    if shadow and id_of(stored) == own_id then return answer('same', 0, 0, 0) end
    if shadow and same_content(stored) then return duplicate(candidate, 1, 1, 1, stored) end
    if same_content(stored) then note_earlier(candidate, stored) end
  end
end

local own, views, asked, lacking
if ARGV[OWN] then -- what was brought of the page's own and of hosts
  own, views, asked, lacking = called(record), {}, {}, {}
  own.min, own.shingles, own.filled = tonumber(ARGV[OWN]), tonumber(ARGV[OWN + 1]), tonumber(ARGV[OWN + 2])
  own.said, own.host = {struct.unpack('<I4I4', ARGV[OWN + 3])}, ARGV[OWN + 5]
  own.asks = tonumber(ARGV[OWN + 6])
  own.front = record:match('^%a[%w+.%-]*://[^/?#]*/', own_url_at) -- whatever begins so is of the same host
  own.has_data = ARGV[OWN + 7] == '1'
  for at = OWN + OF_OWN, #ARGV, PER_HOST do views[ARGV[at]] = at end
end

local function view_beside(host) -- by the table of that host or the own one, which has met more pages; nil if unknown
  local at, others = views[own.host], views[host]
  if others and tonumber(ARGV[others + 1]) >= tonumber(ARGV[at + 1]) then at = others end
  if #ARGV[at + 2] == 0 then return nil end
  unfold()
  own.words, own.main = own_words, own.main or words_of(ARGV[OWN + 4])
  own[at] = own[at] or view_of(own, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4] == '1')
  own[at].shows_own = ARGV[at + 5] == '1'
  return own[at]
end

local met, apart, shared = {}, {}, {} -- candidates, their distances, and how many keys they share
local in_order = true -- whether they were met in the order in which they are compared
local best, near, tried = nil, nil, 0 -- near: the first that resembles the page enough, if it is among the nearest
local function suffices_beside(host, view, kept, filled, same) -- whether the page's own matches, too, and the counts
  if not own then return true end
  if not view then return host ~= own.host and is_mirror(own, kept) end
  local counts = own_counts(own, filled, same, view)
  return not is_other_name(own, kept) and suffices(own, kept, counts, view, values), counts
end

local function host_and_view(stored, url_at) -- false: its host was not brought; nil: neither is known
  local is_same_front = own.front and stored:sub(url_at, url_at + #own.front - 1) == own.front
  local host = is_same_front and own.host or host_of(stored, url_at)
  return host, (views[host] or own.asks == 0) and view_beside(host)
end

local function lack(host)
  if not asked[host] and #lacking < own.asks then asked[host], lacking[#lacking + 1] = true, host end
  return false
end

local function shown() -- the answer that names the first page whose main view is the same, and own
  local equal_views = equal_in(1, MAX_EQUAL)
  for i = 1, #equal_views do
    local candidate = equal_views[i]
    local stored = candidate ~= filed and redis.call('GET', pages .. candidate)
    if stored and stored:sub(SCOPE_AT, SCOPE_END) == own_scope then
      local sketch_at, _, url_at = places_of(stored)
      local kept, host, view = called(stored), host_and_view(stored, url_at)
      if view == false then
        lack(host)
      elseif view and view.shows_own and not is_other_name(own, kept) and is_same_heading(own, kept, view) ~= false then
        if casts_shadow(candidate, stored) then
          local either, both, equal, filled, same = match(stored, sketch_at, 0)
          return duplicate(candidate, either, both, equal, stored, own_counts(own, filled, same, view), 'shown')
        end
        note_earlier(candidate, stored)
      end
    end
  end
end

local function compare(candidate, stored) -- true if it is the page itself
  unfold()
  local length, sketch_at = struct.unpack(SKETCH_LENGTH, stored, BANDS_AT + BAND * stored:byte(BAND_COUNT_AT))
  if length ~= #own_sketch then error('a sketch is too short, or too long') end
  if not own and is_unlike(stored, sketch_at, min_resemblance) then return false end
  local _, id_at, url_at = places_of(stored)
  local kept, host, view = called(stored)
  if own then
    host, view = host_and_view(stored, url_at)
    tried = tried + 1
    if (near or tried > MAX_NEAR) and view and is_hopeless(own, kept, view, stored, sketch_at) then return false end
    if is_unlike(stored, sketch_at, min_resemblance) then return false end
  end
  local either, both, equal, filled, same = match(stored, sketch_at, min_resemblance)
  if not either then return false end
  local resemblance = either == 0 and 1 or math.max(0, (values * equal - both) / ((values - 1) * either))
  if resemblance < min_resemblance then return false end
  local shadow, is_own = casts_shadow(candidate, stored), stored:sub(id_at, url_at - 1) == own_id
  if is_own or (replaced and not shadow) then return is_own and shadow end
  if view == false then return lack(host) end
  local enough, counts = suffices_beside(host, view, kept, filled, same)
  if not shadow then
    if enough then note_earlier(candidate, stored) end
    return false
  end
  if tried <= MAX_NEAR then near = near or {stored, unpack(counts or {})} end
  if enough and (not best or resemblance > best.resemblance
      or (resemblance == best.resemblance and candidate < best.number)) then
    best = {resemblance = resemblance, number = candidate, distance = apart[candidate],
            reply = duplicate(candidate, either, both, equal, stored, counts)}
  end
  return false
end

local function meet(number, distance)
  if not apart[number] then
    local before = met[#met]
    if before and (distance < apart[before] or (distance == apart[before] and number < before)) then in_order = false end
    met[#met + 1], apart[number] = number, distance
  end
  shared[number] = (shared[number] or 0) + 1
end

local function distance_of(stored, at) -- of a simhash that is stored so, less the scope
  local high, low = struct.unpack('>I4I4', stored, at)
  return differing_bits(high, low, own_high, own_low)
end

local function meet_shared() -- of a method of several keys: pages that share one
  local most = MAX_LOOKED + 1
  for i = FIRST_NEAR, #KEYS do
    local found = equal_in(i - FIRST_TABLE, most)
    if #found == most then crowded = 1 end
    if #met > MAX_LOOKED then most = math.ceil(2 * MAX_LOOKED / #KEYS) end
    for j = 1, #found do meet(found[j], 0) end
  end
end

local own_key = key_at(keys, FIRST_NEAR - 5)

-- The buckets to be read: the own ones, the fullest first, then those whose names differ in one bit from that of one of
-- the last `flipped` of these; the tables of the own ones; how many bytes they have.
local typed = false
local function buckets()
  typed = true
  local own, names, octets = {}, {}, 0
  for i = FIRST_NEAR, #KEYS do
    local size = redis.call('STRLEN', KEYS[i])
    own[#own + 1], octets = {octets = size, at = i}, octets + size
  end
  if flipped > 0 then
    table.sort(own, function(a, b) return a.octets > b.octets or (a.octets == b.octets and a.at > b.at) end)
  end
  for i = 1, #own do names[i] = KEYS[own[i].at] end
  local format, n = string.format, #own
  for i = #own - flipped + 1, #own do
    local front, bucket = names[i]:match('^(.*:)(%x+)$')
    local number, flip = tonumber(bucket, 16), 1
    for _ = 1, bucket_bits do
      n = n + 1
      names[n], flip = front .. format('%x', bxor(number, flip)), flip + flip
    end
  end
  return names, own, octets
end

local function sizes_of(names) -- in bytes, and their sum
  local sizes, octets = {}, 0
  for i = 1, #names do
    sizes[i] = redis.call('STRLEN', names[i])
    octets = octets + sizes[i]
  end
  return sizes, octets
end

local function read(names) -- the entries in buckets; nil if they are too many to look among them here
  if last >= MAX_WHOLE and select(2, sizes_of(names)) > MAX_HERE * ENTRY then return nil end
  local found, octets = redis.call('MGET', unpack(names)), 0
  for i = 1, #names do octets = octets + #(found[i] or '') end
  for i = 1, #KEYS - FIRST_NEAR + 1 do held[names[i]] = found[i] or '' end
  return octets <= MAX_HERE * ENTRY and found or nil
end

local function row_of(octet) -- how many bits each octet differs from it in, as digits
  local digits = BITS_APART
  return {[0] = digits:byte(256 * octet + 1), digits:byte(256 * octet + 2, 256 * octet + 256)}
end

local function meet_near(entries, own) -- of some buckets: pages within the radius
  local low, high = struct.unpack('<I4I4', own_key)
  local a, b = row_of(own_key:byte(1)), row_of(own_key:byte(3))
  local c, d = row_of(own_key:byte(5)), row_of(own_key:byte(7))
  local byte, char, find, most = string.byte, string.char, string.find, radius + 4 * ('0'):byte()
  local function look(those, at)
    local first, second, number = struct.unpack('<I4I4I4', those, at)
    local distance = differing_bits(first, second, low, high)
    if distance <= radius and number ~= NOBODY then meet(number, distance) end
  end
  if flipped == 0 then
    for i = 1, #own do
      local those = entries[i] or ''
      for at = 1, #those, ENTRY do
        local p, _, q, _, r, _, s = byte(those, at, at + 6) -- an octet of each block tells nearly all
        if a[p] + b[q] + c[r] + d[s] <= most then look(those, at) end
      end
    end
    return
  end
  local bits_below = 16 - bucket_bits -- of a block, those that do not name its bucket
  local next = #own
  for i = 1, #own do
    local before = 6 - 2 * (own[i].at - FIRST_NEAR) -- octets of an entry: the first table has the highest block
    local first, second = own_key:byte(before + 1, before + 2)
    local flip = 0
    for bit = -1, i > #own - flipped and 15 or -1 do
      local octets = bit < 8 and char(bxor(first, flip), second) or char(first, bxor(second, flip))
      flip = (bit == -1 or bit == 7) and 1 or flip + flip
      if bit >= bits_below then next = next + 1 end
      local those = entries[bit < bits_below and i or next]
      local found = those and find(those, octets, 1, true)
      while found do
        local at = found - before
        if at % ENTRY == 1 then
          local p, _, q, _, r, _, s = byte(those, at, at + 6)
          if a[p] + b[q] + c[r] + d[s] <= most then look(those, at) end
        end
        found = find(those, octets, found + 1, true)
      end
    end
  end
end

local function meet_brought() -- what the caller found, and what was filed since
  if not is_all then crowded = 1 end
  for at = 1, #brought, 5 do
    local number, distance = struct.unpack('<I4B', brought, at)
    meet(number, distance)
  end
  for first = seen + 1, last, BATCH do
    local numbers, names = {}, {}
    for number = first, math.min(first + BATCH - 1, last) do
      numbers[#numbers + 1], names[#names + 1] = number, pages .. number
    end
    local found = redis.call('MGET', unpack(names))
    for i = 1, #names do
      local distance = found[i] and distance_of(found[i], SIMHASH_AT)
      if distance and distance <= radius then meet(numbers[i], distance) end
    end
  end
end

if radius == 0 then
  meet_shared()
elseif seen and last - seen <= MAX_LOOKED then
  meet_brought()
else
  local names, own, octets = buckets()
  local entries = octets <= MAX_HERE * ENTRY and read(names)
  if not entries then
    local sizes = struct.pack('<' .. string.rep('I4', #names), unpack((sizes_of(names))))
    return answer('many', last, table.concat(names, '\n'), sizes)
  end
  meet_near(entries, own)
end
if radius == 0 or not in_order then
  table.sort(met, function(a, b)
    if apart[a] ~= apart[b] then return apart[a] < apart[b] end
    if shared[a] ~= shared[b] and radius == 0 then return shared[a] > shared[b] end
    return a < b
  end)
end

local compared, looked = 0, 0
for first = 1, #met, BATCH do -- all at one distance are compared, or none
  if best and apart[met[first]] > best.distance then break end
  if compared >= MAX_COMPARED or looked >= MAX_LOOKED then
    crowded = 1
    break
  end
  local names = {}
  for i = first, math.min(first + BATCH - 1, #met) do names[#names + 1] = pages .. met[i] end
  local found = redis.call('MGET', unpack(names))
  looked = looked + #names
  for i = 1, #names do
    local candidate, stored = met[first + i - 1], found[i]
    if best and apart[candidate] > best.distance then break end
    if stored and candidate ~= filed and stored:sub(SCOPE_AT, SCOPE_END) == own_scope then
      if compared == MAX_COMPARED then
        crowded = 1
        break
      end
      compared = compared + 1
      if compare(candidate, stored) then return answer('same', 0, 0, 0) end
    end
  end
end
local same_view = own and not best and shown()
if lacking and #lacking > 0 then return answer('hosts', unpack(lacking)) end
if best then return best.reply end
if same_view then return same_view end

local function as_new(number)
  if not replaced and not near then return answer('new', known, crowded, number) end
  return answer('new', known, crowded, number, replaced or '', unpack(near or {}))
end

if was == 'earlier' and unchanged then -- row claim earlier
  redis.call('HSET', pending, filed, run)
  return answer('same', has_died(filed_by(pages .. filed)) and 0 or 1, crowded, filed)
elseif was == 'dead' and unchanged then -- row claim dead
  redis.call('HSET', pending, filed, run)
  file_for(pages .. filed, record:sub(RUN_AT, RUN_END))
  return as_new(filed)
elseif filed and filed ~= outdated_number then
  return answer('changed', filed, filed_record)
end

for i = FIRST_TABLE, #KEYS do -- MGET does not tell their types
  if i >= FIRST_NEAR and not typed or not held[KEYS[i]] then redis.call('STRLEN', KEYS[i]) end
end
if filed then redis.call('GET', outdated[1]) end
for i = 2, #outdated do redis.call('STRLEN', outdated[i]) end
check_room()
local number = redis.call('INCR', sequence) -- row claim absent, row change absent
last = number
if filed then -- rows change earlier, change dead
  redis.call('HDEL', pending, filed)
  redis.call('DEL', pages .. filed)
  redis.call('INCR', outdated[1])
  for i = 2, #outdated do take_out(outdated[i], filed) end
  held = {}
end
local anew = {pages .. number, record}
for i = 5, #KEYS do put_in(KEYS[i], key_at(keys, i - 5), number, held[KEYS[i]], anew) end
redis.call('MSET', unpack(anew))
redis.call('HSET', pending, number, run)
return as_new(number)
