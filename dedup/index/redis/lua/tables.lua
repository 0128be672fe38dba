-- Stands before the scripts that look pages up, or file them.
-- A bucket of a table is a string of entries, in the order in which they were filed.  An entry is the key of a page (8
-- bytes, little-endian: its page id's, its digest, that of its markup, its simhash or a band, with the scope mixed
-- in) and its number (4).  Where an entry was taken out of the midst of a large bucket there is a gap.
local KEY, ENTRY, NOBODY = 8, 12, 4294967295
local GAP = string.rep('\255', ENTRY)
local SMALL = 2048 -- bytes of a bucket that takes no more memory than it has to

local function key_at(keys, i) return keys:sub(KEY * i + 1, KEY * i + KEY) end -- of all keys of a page, the page id's first

local function numbers_of(entries, key, most) -- of the pages with that key, the first ones
  local found, at = {}, 0
  while entries and #found < most do
    at = entries:find(key, at + 1, true)
    if not at then break end
    local number = at % ENTRY == 1 and struct.unpack('<I4', entries, at + KEY)
    if number and number ~= NOBODY then found[#found + 1] = number end
  end
  return found
end

local function id_of(record)
  local length, sketch_at = struct.unpack(SKETCH_LENGTH, record, BANDS_AT + BAND * record:byte(BAND_COUNT_AT))
  local id_length, id_at = struct.unpack(ID_LENGTH, record, sketch_at + length)
  return record:sub(id_at, id_at + id_length - 1)
end

local function number_with_id(entries, key, pages, page_id) -- of the page with that page id, and its record
  for _, number in ipairs(numbers_of(entries, key, MAX_EQUAL)) do -- only a forger makes two of one key
    local record = redis.call('GET', pages .. number)
    if record and id_of(record) == page_id then return number, record end
  end
end

local function number_of(bucket, key) -- of the page with that page id; nil if there is none
  return numbers_of(redis.call('GET', bucket), key, 1)[1]
end

local function check_room() -- an entry has room for no greater number
  if last + 1 >= NOBODY then error('all numbers of this index are given out') end
end

-- Redis lets a string that is appended to take up to twice its length; with itself, OR makes one that fits.
local function put_in(bucket, key, number)
  if redis.call('APPEND', bucket, key .. struct.pack('<I4', number)) <= SMALL then
    redis.call('BITOP', 'OR', bucket, bucket)
  end
end

-- A page whose entries in the buckets KEYS[first ...] are new gets the next number, which is returned.
local function file_page(first, pages, record, keys)
  check_room()
  last = redis.call('INCR', sequence)
  redis.call('SET', pages .. last, record)
  for table = 0, #keys / KEY - 1 do put_in(KEYS[first + table], key_at(keys, table), last) end
  return last
end

local function file_claim(pages, record, keys) -- a page whose buckets are KEYS[5 ...]
  local number = file_page(5, pages, record, keys)
  redis.call('HSET', pending, number, run)
  return number
end

local function take_out(bucket, number)
  local entries, octets, at = redis.call('GET', bucket) or '', struct.pack('<I4', number), 0
  repeat
    at = entries:find(octets, at + 1, true)
    if not at then return end
  until at % ENTRY == KEY + 1
  if number % math.ceil(#entries / ENTRY / 8) ~= 0 then -- of a large bucket, not all is written each time
    redis.call('SETRANGE', bucket, at - KEY - 1, GAP)
    return
  end
  local kept = {} -- without its gaps
  for first = 1, #entries, ENTRY do
    local entry = entries:sub(first, first + ENTRY - 1)
    if entry ~= GAP and entry:sub(KEY + 1) ~= octets then kept[#kept + 1] = entry end
  end
  if #kept == 0 then redis.call('DEL', bucket) else redis.call('SET', bucket, table.concat(kept)) end
end
