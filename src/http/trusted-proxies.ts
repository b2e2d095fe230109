/** Finds the client of a request behind trusted proxies. */
import { BlockList, isIPv6 } from 'node:net'
import { plainAddress } from '../core/keys/address-prefix.ts'

/** `[2001:db8::1]:443` and `203.0.113.7:80` as some proxies write them. */
const WITH_PORT = /^(?:\[(.+)\](?::\d+)?|([\d.]+):\d+)$/

const withoutPort = (entry: string): string => {
  const match = WITH_PORT.exec(entry)
  return match?.[1] ?? match?.[2] ?? entry
}

export class TrustedProxies {
  readonly #list = new BlockList()
  readonly #isEmpty: boolean

  /** @param networks addresses, or networks such as `10.0.0.0/8` */
  constructor(networks: readonly string[]) {
    this.#isEmpty = networks.length === 0
    for (const network of networks) {
      const [address = '', prefix] = network.split('/')
      const family = isIPv6(address) ? 'ipv6' : 'ipv4'
      if (prefix === undefined) this.#list.addAddress(address, family)
      else this.#list.addSubnet(address, Number(prefix), family)
    }
  }

  has(address: string): boolean {
    if (this.#isEmpty) return false
    const plain = plainAddress(address)
    return plain !== '' && this.#list.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4')
  }

  /**
   * Returns the address that a request comes from: the connection's, or, where a trusted proxy made the connection, the
   * last in `X-Forwarded-For` that no trusted proxy has. What comes before it can be forged.
   */
  clientOf(peer: string, forwardedFor: string): string {
    if (forwardedFor === '' || !this.has(peer)) return peer
    let client = peer
    for (const entry of forwardedFor.split(',').reverse()) {
      const address = withoutPort(entry.trim())
      if (plainAddress(address) === '') return client
      client = address
      if (!this.has(address)) return client
    }
    return client
  }
}
