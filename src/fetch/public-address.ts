/**
 * Which addresses the gateway may fetch from on a caller's behalf: only public ones, judged after name resolution.
 * See docs/api-rules.md, "Links from clients".
 */
import { BlockList, isIP } from 'node:net'
import { normalizeAddress } from '../core/keys/address-prefix.ts'

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

/** `::/96`, `64:ff9b::/96` (NAT64) and `2002::/16` (6to4): the last or first 32 bits that matter are an IPv4 address. */
function readEmbeddedV4(groups: readonly number[]): string | null {
  const [first, second, ...others] = groups
  const isPrefix = others.slice(0, 4).every((group) => group === 0)
  const isCompatible = first === 0 && second === 0
  const isNat64 = first === 0x64 && second === 0xff9b
  if (isPrefix && (isCompatible || isNat64)) return printV4(groups[6]!, groups[7]!)
  return first === 0x2002 ? printV4(groups[1]!, groups[2]!) : null
}

const printV4 = (high: number, low: number): string => [high >> 8, high & 255, low >> 8, low & 255].join('.')

/** `2000::/3` is all that IANA has ever given to hosts of the public; what lies beside it is special or nobody's. */
const isGlobalUnicast = ([first]: readonly number[]): boolean => (first! & 0xe000) === 0x2000

/** True for an address that is neither private, loopback, link-local nor otherwise special. */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0) return false
  // A mapped IPv4 address is the IPv4 address.
  const plain = normalizeAddress(address.replace(/%.*$/, ''))
  if (isIP(plain) !== 6) return isIP(plain) === 4 && !REFUSED.check(plain, 'ipv4')
  const groups = plain.split(':').map((group) => Number.parseInt(group, 16))
  const v4 = readEmbeddedV4(groups)
  if (v4 !== null) return isPublicAddress(v4)
  return isGlobalUnicast(groups) && !REFUSED.check(plain, 'ipv6')
}
