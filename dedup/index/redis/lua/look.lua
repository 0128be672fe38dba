-- look(KEYS = {..., bucket of the page id, buckets of the tables of digests, of markup, of rare shingles, and of all
--              others},
--      ARGV = {..., radius, prefix of pages, record, keys, in how many tables pages are read from buckets that differ in
--              one bit, too, how many bits name a bucket})
--   -> last number given out, state of the page id, 1 if there are more than are listed or else 0, numbers (4 bytes each)
--      of the pages of that digest, a mark for each, numbers of the pages with the same markup, and of those that share
--      each rare shingle; then
--        pages near: number (4), distance (1), the nearest first; of those, if they are few, a mark for each, and the records
--        | 'filed', number of the page: nothing is like it
--        | 'many', names of the buckets to be read, a line each, their bytes, 4 bytes each: there are too many to look
--          among them here
-- A mark says what a page is: 'd' done, 'p' pending, '-' it casts no shadow.
-- Looks what is like a page.  If nothing is, files it; else changes nothing.  All reads come before any write.
--
-- The schema: a page is an entry in one bucket of each table (see tables.lua).  By multi-index hashing (Norouzi,
-- Punjani, Fleet 2012), two simhashes within k bits have one of m blocks in which they differ in no bit, or one.  It
-- is enough to allow for that one bit in k + 1 - m of the tables, whichever these are (Qin et al. 2018): if no such
-- block were found, each of them would differ in two bits or more and every other block in one: more than k in all.  So
-- the fullest buckets are read alone.  Up to MAX_HERE entries are looked through here.
-- What comes first in KEYS, ARGV and the answer: see known.lua.
local radius, pages, record, keys = tonumber(ARGV[5]), ARGV[6], ARGV[7], ARGV[8]
local flipped, bucket_bits = tonumber(ARGV[9]), tonumber(ARGV[10])
local FIRST_TABLE, FIRST_NEAR = 6, 8 + RARE
local TOLD = 4 -- so few pages that are near are told with their records: most duplicates are near one or two
local crowded = 0

local filed = number_with_id(redis.call('GET', KEYS[5]), key_at(keys, 0), pages, id_of(record))
local own = filed and state_of(filed, pages .. filed) or 'absent'

local function equal_in(at, most) -- the numbers of pages with an equal key
  local entries = redis.call('GETRANGE', KEYS[at], 0, MAX_EXACT * ENTRY - 1)
  if #entries == MAX_EXACT * ENTRY then crowded = 1 end
  return numbers_of(entries, key_at(keys, at - 5), most)
end

local function packed(numbers)
  local octets = {}
  for i = 1, #numbers do octets[i] = struct.pack('<I4', numbers[i]) end
  return table.concat(octets)
end

local function mark_of(number) return SHADOWS[state_of(number, pages .. number)] or '-' end

local equal, marks = equal_in(FIRST_TABLE, MAX_EQUAL + 1), ''
if #equal > MAX_EQUAL then crowded, equal[#equal] = 1, nil end
for i = 1, #equal do marks = marks .. mark_of(equal[i]) end
local alike, rare = equal_in(FIRST_TABLE + 1, MAX_EQUAL), {}
for at = FIRST_TABLE + 2, FIRST_NEAR - 1 do rare[#rare + 1] = packed(equal_in(at, MAX_RARE)) end

local met, apart, shared = {}, {}, {} -- pages, their distances, and how many keys they share
local function meet(number, distance)
  if not apart[number] then
    met[#met + 1], apart[number] = number, distance
  end
  shared[number] = (shared[number] or 0) + 1
end

local function meet_shared() -- of a method of several keys: pages that share one
  local most = MAX_LOOKED + 1
  for i = FIRST_NEAR, #KEYS do
    local found = equal_in(i, most)
    if #found == most then crowded = 1 end
    if #met > MAX_LOOKED then most = math.ceil(2 * MAX_LOOKED / #KEYS) end
    for j = 1, #found do meet(found[j], 0) end
  end
end

-- The names of the buckets to be read: the own ones, the fullest first, then those that differ in one bit from one of the
-- last `flipped` of these; and what is in them, unless there are too many to look among them here.
local function read_buckets()
  local mine, names, found, octets, most = {}, {}, {}, 0, MAX_HERE * ENTRY
  local function read(first)
    for _, entries in ipairs(redis.call('MGET', unpack(names, first))) do found[#found + 1] = entries or '' end
  end
  for i = FIRST_NEAR, #KEYS do
    mine[#mine + 1] = {octets = redis.call('STRLEN', KEYS[i]), at = i}
    octets = octets + mine[#mine].octets
  end
  table.sort(mine, function(a, b) return a.octets > b.octets or (a.octets == b.octets and a.at > b.at) end)
  for i = 1, #mine do names[i] = KEYS[mine[i].at] end
  if octets <= most then read(1) end
  local format = string.format
  for i = #mine - flipped + 1, #mine do
    local front, bucket = names[i]:match('^(.*:)(%x+)$')
    local number, flip, first = tonumber(bucket, 16), 1, #names + 1
    for n = first, first + bucket_bits - 1 do
      names[n], flip = front .. format('%x', bxor(number, flip)), flip + flip
    end
    if octets <= most then
      read(first)
      for n = first, #names do octets = octets + #found[n] end
    end
  end
  return names, octets <= most and found
end

local function sizes_of(names) -- in bytes
  local sizes = {}
  for i = 1, #names do sizes[i] = redis.call('STRLEN', names[i]) end
  return sizes
end

local function row_of(octet) -- how many bits each octet differs from it in, as digits
  local digits = BITS_APART
  return {[0] = digits:byte(256 * octet + 1), digits:byte(256 * octet + 2, 256 * octet + 256)}
end

local function meet_near(buckets) -- pages within the radius, among the entries of some buckets
  local own_key = key_at(keys, FIRST_NEAR - 5)
  local low, high = struct.unpack('<I4I4', own_key)
  local a, b = row_of(own_key:byte(1)), row_of(own_key:byte(3))
  local c, d = row_of(own_key:byte(5)), row_of(own_key:byte(7))
  local most = radius + 4 * ('0'):byte()
  local byte = string.byte
  for i = 1, #buckets do
    local entries = buckets[i]
    for at = 1, #entries, ENTRY do
      local p, _, q, _, r, _, s = byte(entries, at, at + 6) -- an octet of each block tells nearly all
      if a[p] + b[q] + c[r] + d[s] <= most then
        local first, second, number = struct.unpack('<I4I4I4', entries, at)
        local distance = differing_bits(first, second, low, high)
        if distance <= radius and number ~= NOBODY then meet(number, distance) end
      end
    end
  end
end

if radius == 0 then
  meet_shared()
else
  local names, found = read_buckets()
  if not found then
    local sizes = struct.pack('<' .. string.rep('I4', #names), unpack(sizes_of(names)))
    return answer(last, own, crowded, packed(equal), marks, packed(alike), rare, 'many', table.concat(names, '\n'), sizes)
  end
  meet_near(found)
end
if not filed and #equal == 0 and #alike == 0 and table.concat(rare) == '' and #met == 0 then -- row claim absent
  return answer(last, 'absent', crowded, '', '', '', {}, 'filed', file_claim(pages, record, keys))
end
table.sort(met, function(a, b)
  if apart[a] ~= apart[b] then return apart[a] < apart[b] end
  if shared[a] ~= shared[b] and radius == 0 then return shared[a] > shared[b] end
  return a < b
end)
if #met > MAX_LOOKED then crowded = 1 end
local near, near_marks, records = {}, '', {}
for i = 1, math.min(#met, MAX_LOOKED) do near[i] = struct.pack('<I4B', met[i], apart[met[i]]) end
if #met > 0 and #met <= TOLD then
  local names = {}
  for i = 1, #met do names[i], near_marks = pages .. met[i], near_marks .. mark_of(met[i]) end
  records = redis.call('MGET', unpack(names))
end
return answer(last, own, crowded, packed(equal), marks, packed(alike), rare, table.concat(near), near_marks, unpack(records, 1, #met))
