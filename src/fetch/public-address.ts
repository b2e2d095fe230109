/**
 * Which addresses the gateway may fetch from on a caller's behalf: public ones alone, judged after name resolution.
 * See docs/api-rules.md, "Links from clients".
 */
import { BlockList, isIP } from 'node:net'

const REFUSED = new BlockList()

/** IANA special-purpose registries (RFC 6890 and its updates): nothing in them is a public host. */
const REFUSED_V4: ReadonlyArray<readonly [string, number]> = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]
const REFUSED_V6: ReadonlyArray<readonly [string, number]> = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['3fff::', 20],
]
for (const [network, bits] of REFUSED_V4) REFUSED.addSubnet(network, bits, 'ipv4')
for (const [network, bits] of REFUSED_V6) REFUSED.addSubnet(network, bits, 'ipv6')

/** `::ffff:0:0/96`, `::/96`, `64:ff9b::/96` (NAT64) and `2002::/16` (6to4): the last or first 32 bits that matter are an IPv4 address. */
function embeddedV4(address: string): string | null {
  const groups = expand(address)
  const head = groups.slice(0, 6)
  const isZero = head.slice(0, 5).every((group) => group === 0)
  if (isZero && (head[5] === 0xffff || head[5] === 0)) return v4Of(groups[6]!, groups[7]!)
  const isNat64 =
    groups[0] === 0x64 && groups[1] === 0xff9b && groups.slice(2, 6).every((group) => group === 0)
  if (isNat64) return v4Of(groups[6]!, groups[7]!)
  return groups[0] === 0x2002 ? v4Of(groups[1]!, groups[2]!) : null
}

const v4Of = (high: number, low: number): string => [high >> 8, high & 255, low >> 8, low & 255].join('.')

/** The eight groups of an IPv6 address. */
function expand(address: string): number[] {
  const plain = address.replace(/%.*$/, '').replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) => {
    const group = (high: string, low: string) => ((Number(high) << 8) | Number(low)).toString(16)
    return `${group(a, b)}:${group(c, d)}`
  })
  const [before = '', after] = plain.split('::')
  const groupsOf = (text: string | undefined) =>
    text === undefined || text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
  const first = groupsOf(before)
  const last = groupsOf(after)
  return [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last]
}

/** `2000::/3` is all that IANA has ever given to hosts of the public; what lies beside it is special or nobody's. */
const isGlobalUnicast = (address: string): boolean => (expand(address)[0]! & 0xe000) === 0x2000

/** True for an address that is neither private, loopback, link-local nor otherwise special. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 0) return false
  if (family === 4) return !REFUSED.check(address, 'ipv4')
  const v4 = embeddedV4(address)
  if (v4 !== null) return isPublicAddress(v4)
  return isGlobalUnicast(address) && !REFUSED.check(address.replace(/%.*$/, ''), 'ipv6')
}
