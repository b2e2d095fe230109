/** Every connection between two parts of the installation passes through a relay; a part can be cut off from all. */
import { LOOPBACK } from '../../../src/embedded/ports.ts'
import { type Address, type Interruption, Relay } from './relay.ts'

interface Link {
  readonly ends: readonly [from: string, to: string]
  readonly relay: Relay
}

export class Network {
  readonly #links: Link[] = []
  readonly #interrupted = new Map<string, Interruption>()

  /** Returns where `from` reaches `to`, which listens at the target. */
  async link(from: string, to: string, target: Address): Promise<Address> {
    const relay = new Relay(target)
    const port = await relay.listen()
    this.#links.push({ ends: [from, to], relay })
    return { host: LOOPBACK, port }
  }

  /** The same URL with the host and port of the link. */
  async linkUrl(from: string, to: string, url: string): Promise<string> {
    const target = new URL(url)
    const { host, port } = await this.link(from, to, { host: target.hostname, port: Number(target.port) })
    target.hostname = host
    target.port = String(port)
    return target.href.replace(/\/$/, '')
  }

  cutOff(part: string, how: Interruption): void {
    this.#interrupted.set(part, how)
    for (const { ends, relay } of this.#links) if (ends.includes(part)) relay.interrupt(how)
  }

  /** A link whose other end is cut off too stays interrupted. */
  rejoin(part: string): void {
    this.#interrupted.delete(part)
    for (const { ends, relay } of this.#links) {
      if (!ends.includes(part)) continue
      const how = ends.map((end) => this.#interrupted.get(end)).find((found) => found !== undefined)
      if (how === undefined) relay.restore()
      else relay.interrupt(how)
    }
  }

  close(): void {
    for (const { relay } of this.#links) relay.close()
  }
}
