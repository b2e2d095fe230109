/** Finds the client of a request behind trusted proxies. */
import { AddressList } from '../core/keys/address-list.ts'
import { normalizeAddress } from '../core/keys/address-prefix.ts'

/** `[2001:db8::1]:443` and `203.0.113.7:80` as some proxies write them. */
const WITH_PORT = /^(?:\[(.+)\](?::\d+)?|([\d.]+):\d+)$/

/** Not `trim`, which also takes characters away that are no space in a header. */
const OUTER_SPACE = /^[\t ]+|[\t ]+$/g

const withoutPort = (entry: string): string => {
  const match = WITH_PORT.exec(entry)
  return match?.[1] ?? match?.[2] ?? entry
}

/** Addresses of proxies, and networks of them such as `10.0.0.0/8`. */
export class TrustedProxies extends AddressList {
  /**
   * Returns the address that a request comes from: the connection's, or, where a trusted proxy made the connection, the
   * last in `X-Forwarded-For` that no trusted proxy has. What comes before it can be forged.
   */
  findClient(peer: string, forwardedFor: string): string {
    if (forwardedFor === '' || !this.has(peer)) return peer
    let client = peer
    for (const entry of forwardedFor.split(',').reverse()) {
      const address = withoutPort(entry.replace(OUTER_SPACE, ''))
      if (normalizeAddress(address) === '') return client
      client = address
      if (!this.has(address)) return client
    }
    return client
  }
}
