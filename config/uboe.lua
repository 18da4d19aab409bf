-- SPDX-License-Identifier: BSD-3-Clause
--
-- UB over Ethernet (UDP port 4792) for Wireshark and tshark:
--	wireshark -X lua_script:uboe.lua capture.pcapng
-- Prints every field of every header, checks the ICRC, and names each place where the source is
-- silent or contradicts itself (ub.choice). What a TP decides and no packet says is a preference.

local ub = Proto('ub', 'UB over Ethernet')

ub.prefs.taid = Pref.bool('TAIDETAH in Read, atomics and their responses', true, 'by TP')
ub.prefs.ofst = Pref.bool('OFSTETAH in Read and Read_response', true, 'by TP')
ub.prefs.caqm = Pref.bool('Congestion feedback is CAQM, not LDCP', false, 'by TP')

local b32 = bit32 or bit
local function u32(n) return n % 4294967296 end

-- ---- codes ----

local TP_NAMES = {[0] = 'UTP packet', [1] = 'TP Packet', [2] = 'TPACK', [3] = 'TPACK-CC',
	[5] = 'TPSACK', [6] = 'TPSACK-CC', [8] = 'CNP'}
local NLP_NAMES = {[0] = 'transaction header', [1] = 'UPIH, EIDH, then transaction header',
	[3] = 'security header'}
local ACK_NAMES = {[0] = 'TPACK', [1] = 'receiver not ready', [2] = 'page fault', [3] = 'error',
	[5] = 'answer of the transaction'}
local RSP_NAMES = {[0] = 'done', [1] = 'receiver not ready', [2] = 'page fault', [3] = 'error',
	[5] = 'done, not yet in the medium'}
local ODR_NAMES = {[0] = 'none', [1] = 'relaxed', [2] = 'strong', [4] = 'none, completion',
	[5] = 'relaxed, completion', [6] = 'strong, completion'}
local RC_NAMES = {[0] = 'queue', [1] = 'queue', [2] = 'sequence context'}
local TC_NAMES = {[0] = 'one', [1] = 'one', [2] = 'group'}
local EE_NAMES = {[1] = 'normal', [3] = 'trusted'}
local CNP_NAMES = {[0] = 'none', [1] = 'light', [3] = 'heavy'}
local UD_NAMES = {[0] = 'ADD', [1] = 'CLR', [2] = 'EOR', [3] = 'SET', [4] = 'SMAX', [5] = 'SMIN',
	[6] = 'UMAX', [7] = 'UMIN'}

-- Transaction opcodes: name, then the headers that are always there.
local REQUESTS = {
	[0x00] = {'Send', 'mtetah', 'ofstetah'},
	[0x01] = {'Send_with_immediate', 'mtetah', 'ofstetah', 'immetah'},
	[0x03] = {'Write', 'maetah'},
	[0x04] = {'Write_with_immediate', 'mtetah', 'maetah', 'immetah'},
	[0x05] = {'Write_with_notify', 'maetah', 'ntfetah'},
	[0x06] = {'Read', 'taidetah', 'ofstetah?', 'maetah'},
	[0x10] = {'Management', 'mgmtetah', tokenless = true},
	[0x14] = {'Write_with_be', 'maetah', 'beetah'},
	[0x15] = {'Prefetch_tgt', 'maetah', tokenless = true},
	[0x17] = {'Writeback', 'maetah'},
	[0x18] = {'Writeback_with_be', 'maetah', 'beetah'},
}
for code, name in pairs({[0x07] = 'compare_swap', [0x08] = 'swap', [0x09] = 'store',
		[0x0a] = 'load', [0x0b] = 'fetch_add', [0x0c] = 'fetch_sub', [0x0d] = 'fetch_and',
		[0x0e] = 'fetch_or', [0x0f] = 'fetch_xor'}) do
	REQUESTS[code] = {'Atomic_' .. name, 'taidetah', 'maetah', atomic = true}
end
local RESPONSES = {
	[0x11] = {'TAACK'},
	[0x12] = {'Read_response', 'taidetah', 'ofstetah?'},
	[0x13] = {'Atomic_response', 'taidetah'},
}
local TA_NAMES = {}
for code, op in pairs(REQUESTS) do TA_NAMES[code] = op[1] end
for code, op in pairs(RESPONSES) do TA_NAMES[code] = op[1] end

-- ---- where the source leaves it open ----

local CHOICES = {
	UDP_CSUM = 'UDP checksum: sent as 0, any value is taken',
	ECN = 'ECN: ECT(0) where congestion control is on, else 0',
	FLOW_LABEL = 'flow label: a hash that includes the UDP source port',
	ICRC_ORDER = 'ICRC: least significant byte first',
	ICRC_PAD = 'pad: in front of the ICRC',
	NEGATIVE = 'RSPST 3 RSPINFO 0: alone is negative, all others acknowledge up to their PSN',
	SACK_BIT = 'SAETPH bitmap: bit k is RTPH.PSN + k: byte k / 8, mask 1 << k % 8',
	SEQ = 'CETPH: a packet counts its UDP length - 8, in units of 2 bytes, rounded up',
	ATAH = 'ATAH byte 1: version [7:6] 0 [5:4] SV [3] Poison [2] 0 [1:0]',
	BY_TP = 'TAIDETAH, OFSTETAH of Read, atomics, responses: there unless the TP says no',
	TOKEN_ID = 'TokenID: bits [27:8] of its word',
	READ_OFFSET = 'OFSTETAH of Read_response: that of the request + own displacement / 1024',
	TAID = 'TAID: the TASSN, echoed',
	OLD_VALUE = 'Atomic_response: old value, most significant byte first unless the TP says no',
	CLR_EOR = 'UDETAH [23:20]: 1 CLR is AND NOT, 2 EOR is XOR',
	TPMSN = 'TPMSN: the first operation has 1, responses are counted too',
	WINDOW = "PSN: beyond the receiver's window is dropped without an answer",
	NLP = 'NLP: 0 with one Entity per side; 1 is accepted, and sent where the TP says so',
	DEAD_TC = 'Send to a queue that is gone or in error: not answered, unless both ends agreed on it',
	CNP = 'CNP: of packets with CE, where both ends agreed on it; ECN 3, the other fields 0',
	E_BIT = 'E_bit: 1 passes, as no segment is exclusive; sent as 0 but by privileged Jettys',
}

-- ---- fields: {name, bytes of the word, its offset, high bit, low bit, names} ----

local HEADERS = {
	rtph = {16, {'last', 4, 0, 31, 31}, {'opcode', 4, 0, 30, 24, TP_NAMES},
		{'version', 4, 0, 23, 22}, {'pad', 4, 0, 21, 20}, {'nlp', 4, 0, 19, 16, NLP_NAMES},
		{'src_tpn', 4, 1, 23, 0}, {'dst_tpn', 4, 4, 23, 0}, {'ack', 4, 8, 31, 31},
		{'fake', 4, 8, 30, 30}, {'psn', 4, 8, 23, 0}, {'rspst', 4, 12, 31, 29, ACK_NAMES},
		{'rspinfo', 4, 12, 28, 24}, {'tpmsn', 4, 12, 23, 0}},
	cetph_ldcp = {8, {'ack_seq', 4, 0, 31, 0}, {'ce_seq', 4, 4, 31, 0}},
	cetph_caqm = {8, {'ack_seq', 4, 0, 31, 0}, {'loc', 4, 4, 25, 25}, {'increase', 4, 4, 24, 24},
		{'congested', 4, 4, 23, 16}, {'hint', 4, 4, 15, 0}},
	cetph_cnp = {16, {'ecn', 4, 0, 31, 30, CNP_NAMES}, {'loc', 4, 0, 29, 29}},
	saetph = {4, {'size', 4, 0, 26, 24}, {'max_rcv', 4, 0, 23, 0}},
	upih = {4, {'partition', 4, 0, 23, 0}},
	eidh = {32, {'src_high', 8, 0}, {'src_low', 8, 8}, {'dst_high', 8, 16}, {'dst_low', 8, 24}},
	btah = {8, {'opcode', 4, 0, 31, 24, TA_NAMES}, {'version', 4, 0, 23, 22},
		{'ee', 4, 0, 21, 20, EE_NAMES}, {'tv_en', 4, 0, 19, 19}, {'poison', 4, 0, 18, 18},
		{'ud_flag', 4, 0, 16, 16}, {'tassn', 4, 0, 15, 0}, {'no_taack', 4, 4, 31, 31},
		{'odr', 4, 4, 30, 28, ODR_NAMES}, {'mt_en', 4, 4, 27, 27}, {'fce', 4, 4, 26, 26},
		{'retry', 4, 4, 25, 25}, {'alloc', 4, 4, 24, 24}, {'e_bit', 4, 4, 22, 22},
		{'rc_type', 4, 4, 21, 20, RC_NAMES}, {'rc_id', 4, 4, 19, 0}},
	atah = {8, {'opcode', 4, 0, 31, 24, TA_NAMES}, {'version', 4, 0, 23, 22}, {'sv', 4, 0, 19, 19},
		{'poison', 4, 0, 18, 18}, {'tassn', 4, 0, 15, 0}, {'rspst', 4, 4, 31, 29, RSP_NAMES},
		{'rspinfo', 4, 4, 28, 24}, {'rc_type', 4, 4, 21, 20, RC_NAMES}, {'rc_id', 4, 4, 19, 0}},
	maetah = {16, {'address', 8, 0}, {'token_id', 4, 8, 27, 8}, {'length', 4, 12, 31, 0}},
	mtetah = {4, {'hint', 4, 0, 31, 24}, {'type', 4, 0, 21, 20, TC_NAMES}, {'tc_id', 4, 0, 19, 0}},
	tvetah = {4, {'token_value', 4, 0, 31, 0}},
	taidetah = {4, {'taid', 4, 0, 15, 0}},
	ofstetah = {4, {'offset', 4, 0, 23, 0}},
	immetah = {16, {'immediate', 8, 0}, {'token_value', 4, 8, 31, 0}, {'length', 4, 12, 31, 0}},
	ntfetah = {24, {'address', 8, 0}, {'token_id', 4, 8, 27, 8}, {'token_value', 4, 12, 31, 0},
		{'data', 8, 16}},
	udetah = {4, {'user', 4, 0, 31, 0}},
	mgmtetah = {4, {'sub_code', 4, 0, 31, 28}, {'code', 4, 0, 27, 25}, {'rsp', 4, 0, 24, 24},
		{'status', 4, 0, 23, 16}, {'pdu_length', 4, 0, 11, 0}},
}
local UTPH = {last = true, opcode = true, version = true, pad = true, nlp = true}

local fields = {
	choice = ProtoField.string('ub.choice', 'Choice'),
	bitmap = ProtoField.bytes('ub.bitmap', 'Received'),
	enables = ProtoField.bytes('ub.enables', 'Byte enables'),
	payload = ProtoField.bytes('ub.payload', 'Payload'),
	operand1 = ProtoField.bytes('ub.operand1', 'Operand 1, least significant byte first'),
	operand2 = ProtoField.bytes('ub.operand2', 'Operand 2, least significant byte first'),
	operation = ProtoField.uint8('ub.operation', 'Operation', base.DEC, UD_NAMES),
	security = ProtoField.bytes('ub.security', 'Security header and all behind it'),
	missing = ProtoField.string('ub.missing', 'PSNs missing'),
	padding = ProtoField.bytes('ub.padding', 'Padding'),
	icrc = ProtoField.uint32('ub.icrc', 'ICRC', base.HEX),
	good = ProtoField.bool('ub.icrc.good', 'ICRC is right'),
}
for header, list in pairs(HEADERS) do
	for i = 2, #list do
		local f = list[i]
		local abbr = 'ub.' .. header .. '.' .. f[1]
		if f[2] == 8 then
			fields[abbr] = ProtoField.uint64(abbr, f[1], base.HEX)
		else
			fields[abbr] = ProtoField.uint32(abbr, f[1], base.HEX_DEC, f[6])
		end
	end
end
ub.fields = fields

local bad_icrc = ProtoExpert.new('ub.icrc.bad', 'ICRC is wrong', expert.group.CHECKSUM,
	expert.severity.ERROR)
local malformed = ProtoExpert.new('ub.malformed', 'Malformed', expert.group.MALFORMED,
	expert.severity.ERROR)
ub.experts = {bad_icrc, malformed}

-- ---- ICRC ----

local crc_table = {}
for i = 0, 255 do
	local c = i
	for _ = 1, 8 do
		if c % 2 == 1 then
			c = u32(b32.bxor(b32.rshift(c, 1), 0xedb88320))
		else
			c = b32.rshift(c, 1)
		end
	end
	crc_table[i] = u32(c)
end

local function crc_of(c, bytes)
	for i = 1, #bytes do
		local index = b32.band(b32.bxor(c, bytes:byte(i)), 255)
		c = u32(b32.bxor(u32(b32.rshift(c, 8)), crc_table[index]))
	end
	return c
end

local function ones(bytes, ...)
	for _, at in ipairs({...}) do
		bytes = bytes:sub(1, at) .. '\255' .. bytes:sub(at + 2)
	end
	return bytes
end

local ip_field, ip6_field, udp_field = Field.new('ip'), Field.new('ipv6'), Field.new('udp')

local function last_of(field)
	local all = {field()}
	return all[#all]
end

-- What routers may change is read as ones.
local function headers_of_frame()
	local udp, ip, ip6 = last_of(udp_field), last_of(ip_field), last_of(ip6_field)
	if udp == nil or (ip == nil and ip6 == nil) then return nil end
	local l3
	if ip6 ~= nil and (ip == nil or ip6.offset > ip.offset) then
		l3 = ip6.range:raw():sub(1, 40)
		l3 = string.char(b32.bor(l3:byte(1), 15)) .. l3:sub(2)
		l3 = ones(l3, 1, 2, 3, 7)
	else
		l3 = ones(ip.range:raw():sub(1, 20), 1, 8, 10, 11)
	end
	return l3 .. ones(udp.range:raw():sub(1, 8), 6, 7)
end

local function check_icrc(tvb, tree, n)
	local front = headers_of_frame()
	local range = tvb(n, 4)
	local item = tree:add_le(fields.icrc, range)
	tree:add(fields.choice, range, 'ICRC_ORDER: ' .. CHOICES.ICRC_ORDER):set_generated()
	if front == nil then return end
	local c = crc_of(crc_of(4294967295, front), tvb(0, n):raw())
	local good = u32(b32.bnot(c)) == u32(range:le_uint())
	tree:add(fields.good, range, good):set_generated()
	if not good then item:add_proto_expert_info(bad_icrc) end
end

-- ---- headers ----

local Reader = {}
Reader.__index = Reader

function Reader:choose(tree, name, range)
	tree:add(fields.choice, range, name .. ': ' .. CHOICES[name]):set_generated()
end

function Reader:fail(why)
	self.tree:add_proto_expert_info(malformed, why)
	self.failed = true
end

-- Adds a header's fields; returns its values and its subtree, or nil if it is cut off.
function Reader:header(name, only)
	local list = HEADERS[name]
	if self.failed then return nil end
	if self.at + list[1] > self.len then
		self:fail('ends inside ' .. name:upper())
		return nil
	end
	local sub = self.tree:add(ub, self.tvb(self.at, list[1]), name:upper())
	local values = {}
	for i = 2, #list do
		local f = list[i]
		local range = self.tvb(self.at + f[3], f[2])
		local pf = fields['ub.' .. name .. '.' .. f[1]]
		if f[2] == 8 then
			values[f[1]] = range:uint64()
			sub:add(pf, range)
		elseif only == nil or only[f[1]] then
			local v = range:bitfield(31 - f[4], f[4] - f[5] + 1)
			values[f[1]] = v
			sub:add(pf, range, v)
		end
	end
	self.at = self.at + list[1]
	return values, sub
end

function Reader:bytes(field, n)
	if self.failed then return end
	if n > self.len - self.at then return self:fail('ends inside ' .. field) end
	if n > 0 then self.tree:add(fields[field], self.tvb(self.at, n)) end
	self.at = self.at + n
end

local function show_missing(r, sub, psn, saetph, bits)
	local missing, range = {}, r.tvb(r.at, bits / 8)
	local span = (saetph.max_rcv - psn) % 16777216
	for k = 0, math.min(bits - 1, span) do
		local byte = r.tvb(r.at + math.floor(k / 8), 1):uint()
		if b32.band(b32.rshift(byte, k % 8), 1) == 0 and #missing < 64 then
			missing[#missing + 1] = string.format('%06x', (psn + k) % 16777216)
		end
	end
	sub:add(fields.missing, range, table.concat(missing, ' ')):set_generated()
end

function Reader:sack(psn)
	local v, sub = self:header('saetph')
	if v == nil then return end
	if v.size > 4 then return self:fail('size code of the bitmap is not defined') end
	local n = 8 * 2 ^ v.size
	if n > self.len - self.at then return self:fail('ends inside the bitmap') end
	self:choose(sub, 'SACK_BIT', self.tvb(self.at, n))
	show_missing(self, sub, psn, v, 8 * n)
	self:bytes('bitmap', n)
end

function Reader:congestion(name)
	local v, sub = self:header(name)
	if v == nil then return end
	self:choose(sub, name == 'cetph_cnp' and 'CNP' or 'SEQ', self.tvb(self.at - 8, 8))
end

function Reader:answer(rtph)
	local op = rtph.opcode
	if op == 3 or op == 6 then self:congestion(ub.prefs.caqm and 'cetph_caqm' or 'cetph_ldcp') end
	if op == 8 then self:congestion('cetph_cnp') end
	if op == 5 or op == 6 then self:sack(rtph.psn) end
	if not self.failed and self.at ~= self.len then self:fail('bytes behind the acknowledgement') end
end

-- What is noted beside an extension header
local NOTES = {maetah = 'TOKEN_ID', ntfetah = 'TOKEN_ID', taidetah = 'TAID'}

function Reader:extension(name, code)
	local v, sub = self:header(name)
	if v == nil then return nil end
	local range = self.tvb(self.at - HEADERS[name][1], HEADERS[name][1])
	if NOTES[name] ~= nil then self:choose(sub, NOTES[name], range) end
	if name == 'taidetah' or (name == 'ofstetah' and (code == 6 or code == 0x12)) then
		self:choose(sub, 'BY_TP', range)
	end
	if name == 'ofstetah' and code == 0x12 then self:choose(sub, 'READ_OFFSET', range) end
	if name == 'udetah' and (code == 9 or code == 10) then
		sub:add(fields.operation, range, range:bitfield(8, 4))
		if range:bitfield(8, 4) == 1 or range:bitfield(8, 4) == 2 then
			self:choose(sub, 'CLR_EOR', range)
		end
	end
	return v
end

-- Extension headers in their order; returns the MAETAH.
function Reader:extensions(op, code, user, token)
	local maetah
	if user then self:extension('udetah', code) end
	for i = 2, #op do
		local name = op[i]
		local there = true
		if name == 'taidetah' then there = ub.prefs.taid end
		if name == 'ofstetah?' then name, there = 'ofstetah', ub.prefs.ofst end
		if there and name ~= 'beetah' then
			local v = self:extension(name, code)
			if name == 'maetah' then maetah = v end
		end
	end
	if token then self:extension('tvetah', code) end
	if op[#op] == 'beetah' and maetah ~= nil then
		self:bytes('enables', math.floor(maetah.length / 8))
	end
	return maetah
end

function Reader:payload(op, code, maetah, pad)
	if self.failed then return end
	local n = self.len - self.at - pad
	if n < 0 then return self:fail('pad exceeds what is there') end
	if op.atomic and maetah ~= nil and n == 2 * maetah.length then
		self:bytes('operand1', n / 2)
		self:bytes('operand2', n / 2)
	else
		if code == 0x13 and n > 0 then
			self:choose(self.tree, 'OLD_VALUE', self.tvb(self.at, n))
		end
		self:bytes('payload', n)
	end
	if pad > 0 then
		self:choose(self.tree, 'ICRC_PAD', self.tvb(self.at, pad))
		self:bytes('padding', pad)
	end
end

function Reader:transaction(pad)
	if self.len - self.at < 8 then return self:fail('ends inside BTAH or ATAH') end
	local code = self.tvb(self.at, 1):uint()
	local request, response = REQUESTS[code], RESPONSES[code]
	self.info = TA_NAMES[code] or string.format('transaction opcode %02x', code)
	if request ~= nil then
		local v, sub = self:header('btah')
		self:choose(sub, 'E_BIT', self.tvb(self.at - 8, 8))
		if code <= 1 then self:choose(sub, 'DEAD_TC', self.tvb(self.at - 8, 8)) end
		local maetah = self:extensions(request, code, v.ud_flag == 1,
			v.tv_en == 1 and not request.tokenless)
		self:payload(request, code, maetah, pad)
	elseif response ~= nil then
		local _, sub = self:header('atah')
		self:choose(sub, 'ATAH', self.tvb(self.at - 8, 8))
		self:extensions(response, code, false, false)
		self:payload(response, code, nil, pad)
	else
		self:fail('transaction opcode is not defined')
	end
end

function Reader:packet(rtph)
	if rtph.fake == 1 then return end
	if rtph.nlp == 1 then
		self:header('upih')
		self:header('eidh')
	elseif rtph.nlp == 3 then
		return self:bytes('security', self.len - self.at)
	elseif rtph.nlp ~= 0 then
		return self:fail('next layer is not defined')
	end
	if not self.failed then self:transaction(rtph.pad) end
end

local function note_transport(r, sub, rtph)
	local all = r.tvb(0, 16)
	if rtph.opcode <= 1 then r:choose(sub, 'NLP', all) end
	if rtph.opcode == 1 then
		r:choose(sub, 'WINDOW', all)
		r:choose(sub, 'TPMSN', all)
	end
	if rtph.opcode == 2 or rtph.opcode == 3 then r:choose(sub, 'NEGATIVE', all) end
end

local function name_of(rtph)
	if (rtph.opcode == 2 or rtph.opcode == 3) and rtph.rspst == 3 and rtph.rspinfo == 0 then
		return 'TPNAK'
	end
	return TP_NAMES[rtph.opcode] or string.format('opcode %02x', rtph.opcode)
end

local function note_frame(r, tree)
	r:choose(tree, 'UDP_CSUM', r.tvb(0, 0))
	r:choose(tree, 'ECN', r.tvb(0, 0))
	if last_of(ip6_field) ~= nil then r:choose(tree, 'FLOW_LABEL', r.tvb(0, 0)) end
end

function ub.dissector(tvb, pinfo, root)
	local n = tvb:reported_length_remaining()
	pinfo.cols.protocol = 'UB'
	local tree = root:add(ub, tvb())
	if tvb:len() < n or n < 20 then
		tree:add_proto_expert_info(malformed, 'ends inside transport header or ICRC')
		return
	end
	local r = setmetatable({tvb = tvb, tree = tree, at = 0, len = n - 4}, Reader)
	local opcode = tvb(0, 1):bitfield(1, 7)
	local rtph, sub = r:header('rtph', opcode == 0 and UTPH or nil)
	note_frame(r, tree)
	note_transport(r, sub, rtph)
	if TP_NAMES[opcode] == nil then
		r:fail('transport opcode is not defined')
	elseif opcode <= 1 then
		r:packet(rtph)
	else
		r:answer(rtph)
	end
	check_icrc(tvb, tree, n - 4)
	local text = name_of(rtph) .. (r.info ~= nil and ' ' .. r.info or '')
	if opcode ~= 0 then
		text = string.format('%s %06x -> %06x PSN %06x TPMSN %06x', text, rtph.src_tpn,
			rtph.dst_tpn, rtph.psn, rtph.tpmsn)
	end
	pinfo.cols.info = text
end

DissectorTable.get('udp.port'):add(4792, ub)
