-- Stands before claim.lua: words of 32 bits, and the lanes of a sketch in them; see dedup/fingerprint/sketch.py.
-- ARGV[7] is the width of a lane in bits.
local band, bor, bxor, bnot, rshift = bit.band, bit.bor, bit.bxor, bit.bnot, bit.rshift
local width = tonumber(ARGV[7])

local function bits_of_nibbles(x) -- how many bits of each four are set
  x = x - band(rshift(x, 1), 0x55555555)
  return band(x, 0x33333333) + band(rshift(x, 2), 0x33333333)
end

local function sum_of_nibbles(x)
  return (band(x, 0x0f0f0f0f) + band(rshift(x, 4), 0x0f0f0f0f)) % 255 -- the bytes, since 256 is 1 more than 255
end

local function differing_bits(a, b, c, d) -- of a, b and c, d: two words each
  return sum_of_nibbles(bits_of_nibbles(bxor(a, c)) + bits_of_nibbles(bxor(b, d)))
end

-- 1 in every lane of `width` bits that is not 0; a bit for each slot that is filled
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

local function sum_of_pairs(x) -- of the sixteen 2-bit fields of a word
  return sum_of_nibbles(band(x, 0x33333333) + band(rshift(x, 2), 0x33333333))
end

local function words_of(octets) -- all at once: a call for each word would take longer than what is done with it
  local words = {struct.unpack('<' .. string.rep('I4', #octets / 4), octets)}
  words[#words] = nil -- where what follows them begins
  return words
end

local function in_lanes(sketch) -- its words, and which of their slots are filled
  local words, filled = words_of(sketch), {}
  for i, word in ipairs(words) do filled[i] = lanes(word) end
  return words, filled
end
