/** The network of an address: enough to see where requests come from, without naming one machine. */

const IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/
const MAPPED = /^(?:::ffff:|0000:0000:0000:0000:0000:ffff:)/i
const IPV6_GROUPS = 8
const IPV6_PREFIX_GROUPS = 3

/** Two groups that were written together, as in `0000:0000:0000:0000:0000:ffff:7f00:0001`. */
function dotted(groups: readonly string[]): string {
  const bytes = groups.flatMap((group) => {
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 0xff]
  })
  return bytes.join('.')
}

/** `203.0.113.0/24` or `2001:db8:1::/48`; empty for what is no address. */
export function addressPrefix(address: string): string {
  const plain = address.replace(MAPPED, '')
  const ipv4 = IPV4.test(plain)
    ? plain
    : plain !== address && /^[\da-f]+:[\da-f]+$/i.test(plain)
      ? dotted(plain.split(':'))
      : null
  if (ipv4 !== null) return `${ipv4.split('.').slice(0, 3).join('.')}.0/24`
  const [head = '', tail] = address.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : IPV6_GROUPS - before.length - after.length
  const groups = [...before, ...Array<string>(Math.max(zeros, 0)).fill('0'), ...after]
  if (groups.length !== IPV6_GROUPS || groups.some((group) => !/^[\da-f]{1,4}$/i.test(group))) return ''
  const prefix = groups.slice(0, IPV6_PREFIX_GROUPS).map((group) => Number.parseInt(group, 16).toString(16))
  return `${prefix.join(':')}::/48`
}
