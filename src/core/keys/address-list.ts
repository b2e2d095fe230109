/** Addresses and networks in CIDR notation, IPv4 and IPv6; a mapped IPv4 address is the IPv4 address. */
import { normalizeAddress } from './address-prefix.ts'

const IPV4 = { bits: 32, separator: '.', radix: 10, width: 8 } as const
const IPV6 = { bits: 128, separator: ':', radix: 16, width: 16 } as const
type Family = typeof IPV4 | typeof IPV6

const MAPPED_PREFIX = 96
const PREFIX = /^(?:0|[1-9]\d{0,2})$/

interface Network {
  readonly family: Family
  readonly value: bigint
  readonly prefix: number
}

/** Returns an address as a number; null for any other text. */
function parseNumber(text: string): Pick<Network, 'family' | 'value'> | null {
  const plain = normalizeAddress(text)
  if (plain === '') return null
  const family = plain.includes(':') ? IPV6 : IPV4
  const parts = plain.split(family.separator).map((part) => BigInt(Number.parseInt(part, family.radix)))
  return { family, value: parts.reduce((value, part) => (value << BigInt(family.width)) | part, 0n) }
}

/** Returns the network of a text; null for any other text. */
function parseNetwork(text: string): Network | null {
  const [given = '', length, ...rest] = text.split('/')
  const address = parseNumber(given)
  if (address === null || rest.length > 0 || (length !== undefined && !PREFIX.test(length))) return null
  const { bits } = address.family
  // `::ffff:10.0.0.0/104` is `10.0.0.0/8`.
  const isMapped = address.family === IPV4 && given.includes(':')
  const prefix = length === undefined ? bits : Number(length) - (isMapped ? MAPPED_PREFIX : 0)
  return prefix < 0 || prefix > bits ? null : { ...address, prefix }
}

/** Returns the bits that the addresses of a network share. */
const keepSharedBits = (value: bigint, { family, prefix }: Network): bigint =>
  value >> BigInt(family.bits - prefix)

/** Returns an address in the form that people write. */
function printAddress(value: bigint, { bits, separator, radix, width }: Family): string {
  const mask = (1n << BigInt(width)) - 1n
  const parts = Array.from({ length: bits / width }, (_, at) =>
    ((value >> BigInt(bits - (at + 1) * width)) & mask).toString(radix),
  )
  const text = parts.join(separator)
  // A URL leaves out the longest run of zeros, the first of several.
  return bits === IPV4.bits ? text : new URL(`http://[${text}]`).hostname.slice(1, -1)
}

/**
 * Returns an address or network in its one form, such as `203.0.113.7`, `10.0.0.0/8` and `2001:db8::/32`.
 * @throws RangeError for any other text, and for a network that is written by an address inside it
 */
export function normalizeNetwork(text: string): string {
  const network = parseNetwork(text.trim())
  if (network === null)
    throw new RangeError(
      `"${text}" is neither an address nor a network, such as 203.0.113.7, 10.0.0.0/8 and 2001:db8::/32`,
    )
  const { family, value, prefix } = network
  const first = keepSharedBits(value, network) << BigInt(family.bits - prefix)
  const plain = `${printAddress(first, family)}${prefix === family.bits ? '' : `/${prefix}`}`
  if (first !== value)
    throw new RangeError(`"${text}" names an address inside a network: write ${plain} for the whole network`)
  return plain
}

export class AddressList {
  readonly #networks: readonly Network[]

  /** @param networks texts that are no network match nothing */
  constructor(networks: readonly string[]) {
    this.#networks = networks.map(parseNetwork).filter((network) => network !== null)
  }

  has(address: string): boolean {
    if (this.#networks.length === 0) return false
    const asked = parseNumber(address)
    if (asked === null) return false
    return this.#networks.some(
      (network) =>
        network.family === asked.family &&
        keepSharedBits(asked.value, network) === keepSharedBits(network.value, network),
    )
  }
}
