-- Stands before the scripts that compare simhashes: words of 32 bits.
local band, bxor, rshift = bit.band, bit.bxor, bit.rshift

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
