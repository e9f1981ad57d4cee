-- SPDX-License-Identifier: Apache-2.0
-- CELL_GET and CELL_SET. ARGV[3] name; of CELL_SET 4 the version it is to have, 5 the fence, 6 the
-- identity of the write, 7 the value; without it the cell is deleted.
-- {CELL, version (0: there is none), largest fence, value}, {CONFLICT}, {OVERTAKEN}, {LOST},
-- {STALE}. Fences are too large for Lua's numbers: they are compared as text.
local no = refused(ARGV[1], tonumber(ARGV[2]))
if no then return no end
local key = base .. 'k:' .. ARGV[3]
local cell = call('HMGET', key, 'version', 'fence', 'writer', 'value')
local version, fence, value = cell[1] or '0', cell[2] or '0', cell[4]
if ARGV[4] and cell[3] ~= ARGV[6] then
  local smaller = #ARGV[5] < #fence or (#ARGV[5] == #fence and ARGV[5] < fence)
  if smaller and ARGV[5] ~= '0' then return {'OVERTAKEN'} end
  if ARGV[4] ~= (value and version or '0') then return {'CONFLICT'} end
  if not smaller then fence = ARGV[5] end
  value = ARGV[7]
  version = text_of(tonumber(version) + 1)
  call('HSET', key, 'version', version, 'fence', fence, 'writer', ARGV[6])
  if value then call('HSET', key, 'value', value) else call('HDEL', key, 'value') end
end
return {'CELL', value and version or '0', fence, value or ''}
