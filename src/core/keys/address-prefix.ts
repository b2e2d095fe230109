/** Addresses of clients: as one text each, and the networks that they belong to. */

const IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/
/** An IPv4 address as servers for both families write it. */
const MAPPED = /^(?:::ffff:|0000:0000:0000:0000:0000:ffff:)/i
const IPV6_GROUPS = 8
/** Of a network that one site has. */
const SITE_GROUPS = 3
/** Of a network that one customer has: within it an address costs nothing. */
const CUSTOMER_GROUPS = 4

/** Returns the four numbers of two groups, as in `7f00:0001`. */
const numbersOf = (groups: readonly string[]): string[] =>
  groups.flatMap((group) => {
    const value = Number.parseInt(group, 16)
    return [String(value >> 8), String(value & 0xff)]
  })

/** Returns the four numbers of an IPv4 address, or the eight groups of an IPv6 one; null for any other text. */
function partsOf(address: string): readonly string[] | null {
  const plain = address.replace(MAPPED, '')
  if (IPV4.test(plain)) return plain.split('.')
  if (plain !== address && /^[\da-f]{1,4}:[\da-f]{1,4}$/i.test(plain)) return numbersOf(plain.split(':'))
  const [head = '', tail] = address.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : IPV6_GROUPS - before.length - after.length
  const groups = [...before, ...Array<string>(Math.max(zeros, 0)).fill('0'), ...after]
  if (groups.length !== IPV6_GROUPS || groups.some((group) => !/^[\da-f]{1,4}$/i.test(group))) return null
  return groups.map((group) => Number.parseInt(group, 16).toString(16))
}

const isIpv4 = (parts: readonly string[]): boolean => parts.length < IPV6_GROUPS

/** Returns an address in its one form, `203.0.113.7` or `2001:db8:0:0:0:0:0:1`; empty for any other text. */
export function plainAddress(address: string): string {
  const parts = partsOf(address)
  if (parts === null) return ''
  return parts.join(isIpv4(parts) ? '.' : ':')
}

/** Returns the network that counts as one client, `203.0.113.7` or `2001:db8:1:0::/64`; empty for any other text. */
export function clientNetwork(address: string): string {
  const parts = partsOf(address)
  if (parts === null) return ''
  return isIpv4(parts) ? parts.join('.') : `${parts.slice(0, CUSTOMER_GROUPS).join(':')}::/64`
}

/**
 * Returns the network of an address without naming one machine, `203.0.113.0/24` or `2001:db8:1::/48`; empty for any
 * other text.
 */
export function addressPrefix(address: string): string {
  const parts = partsOf(address)
  if (parts === null) return ''
  if (isIpv4(parts)) return `${parts.slice(0, -1).join('.')}.0/24`
  return `${parts.slice(0, SITE_GROUPS).join(':')}::/48`
}
