/** Addresses of clients: as one text each, and the networks that they belong to. */

const NUMBER = /^(?:0|[1-9]\d{0,2})$/
const MAX_NUMBER = 255
const NUMBERS = 4
const GROUP = /^[\da-f]{1,4}$/i
const IPV6_GROUPS = 8
/** Zeros and `ffff` before an IPv4 address, as servers for both families write it. */
const MAPPED = ['0', '0', '0', '0', '0', 'ffff'].join(':')
const MAPPED_GROUPS = 6
/** Of a network that one site has. */
const SITE_GROUPS = 3
/** Of a network that one customer has: within it an address costs nothing. */
const CUSTOMER_GROUPS = 4

/** Returns the four numbers of two groups, as in `7f00:0001`. */
const normalizeGroups = (groups: readonly string[]): string[] =>
  groups.flatMap((group) => {
    const value = Number.parseInt(group, 16)
    return [String(value >> 8), String(value & 0xff)]
  })

/** Returns the four numbers of an IPv4 address; null for any other text. */
function parseIpv4(text: string): string[] | null {
  const numbers = text.split('.')
  const isAddress = numbers.every((number) => NUMBER.test(number) && Number(number) <= MAX_NUMBER)
  return isAddress && numbers.length === NUMBERS ? numbers : null
}

/** Returns the groups of one side of `::`, the last two of which may be written as an IPv4 address; null for any other text. */
function parseGroups(side: string): string[] | null {
  if (side === '') return []
  const groups: string[] = []
  const written = side.split(':')
  for (const [at, group] of written.entries()) {
    const numbers = at === written.length - 1 ? parseIpv4(group)?.map(Number) : undefined
    if (numbers !== undefined) {
      const [a = 0, b = 0, c = 0, d = 0] = numbers
      groups.push(((a << 8) | b).toString(16), ((c << 8) | d).toString(16))
    } else if (GROUP.test(group)) groups.push(Number.parseInt(group, 16).toString(16))
    else return null
  }
  return groups
}

/** Returns the eight groups of an IPv6 address; null for any other text. */
function parseIpv6(text: string): string[] | null {
  const [head = '', tail, ...rest] = text.split('::')
  const before = parseGroups(head)
  const after = tail === undefined ? [] : parseGroups(tail)
  if (before === null || after === null || rest.length > 0 || (tail !== undefined && head.includes('.')))
    return null
  const zeros = IPV6_GROUPS - before.length - after.length
  if (tail === undefined ? zeros !== 0 : zeros < 1) return null
  return [...before, ...Array<string>(zeros).fill('0'), ...after]
}

/** Returns the four numbers of an IPv4 address, or the eight groups of an IPv6 one; null for any other text. */
function parseParts(address: string): readonly string[] | null {
  if (!address.includes(':')) return parseIpv4(address)
  const groups = parseIpv6(address)
  const isMapped = groups?.slice(0, MAPPED_GROUPS).join(':') === MAPPED
  return isMapped ? normalizeGroups(groups!.slice(MAPPED_GROUPS)) : groups
}

const isIpv4 = (parts: readonly string[]): boolean => parts.length < IPV6_GROUPS

/** Returns an address in its one form, `203.0.113.7` or `2001:db8:0:0:0:0:0:1`; empty for any other text. */
export function normalizeAddress(address: string): string {
  const parts = parseParts(address)
  if (parts === null) return ''
  return parts.join(isIpv4(parts) ? '.' : ':')
}

/** Returns the network that counts as one client, `203.0.113.7` or `2001:db8:1:0::/64`; empty for any other text. */
export function clientNetwork(address: string): string {
  const parts = parseParts(address)
  if (parts === null) return ''
  return isIpv4(parts) ? parts.join('.') : `${parts.slice(0, CUSTOMER_GROUPS).join(':')}::/64`
}

/**
 * Returns the network of an address without naming one machine, `203.0.113.0/24` or `2001:db8:1::/48`; empty for any
 * other text.
 */
export function addressPrefix(address: string): string {
  const parts = parseParts(address)
  if (parts === null) return ''
  if (isIpv4(parts)) return `${parts.slice(0, -1).join('.')}.0/24`
  return `${parts.slice(0, SITE_GROUPS).join(':')}::/48`
}
