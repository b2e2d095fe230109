/** A TCP relay between two processes, which can hang or cut what it carries. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { LOOPBACK } from '../../../src/embedded/ports.ts'

export interface Address {
  readonly host: string
  readonly port: number
}

/** `hang`: no byte passes, and nothing is closed. `cut`: connections are reset, new ones too. */
export type Interruption = 'hang' | 'cut'

export class Relay {
  readonly #target: Address
  readonly #server: Server
  readonly #pairs = new Set<readonly [Socket, Socket]>()
  #state: 'open' | Interruption = 'open'

  constructor(target: Address) {
    this.#target = target
    this.#server = createServer((client) => this.#accept(client))
  }

  /** Listens on a free port of the loopback address, and returns it. */
  async listen(): Promise<number> {
    this.#server.listen(0, LOOPBACK)
    await once(this.#server, 'listening')
    return (this.#server.address() as AddressInfo).port
  }

  interrupt(how: Interruption): void {
    this.#state = how
    for (const pair of this.#pairs)
      for (const socket of pair) {
        if (how === 'cut') socket.resetAndDestroy()
        else socket.pause()
      }
  }

  /** Lets bytes pass again: also those that were held. */
  restore(): void {
    this.#state = 'open'
    for (const pair of this.#pairs) for (const socket of pair) socket.resume()
  }

  close(): void {
    this.#server.close()
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy()
  }

  #accept(client: Socket): void {
    if (this.#state === 'cut') {
      client.resetAndDestroy()
      return
    }
    const server = connect(this.#target)
    const pair = [client, server] as const
    this.#pairs.add(pair)
    this.#carry(client, server, pair)
    this.#carry(server, client, pair)
    if (this.#state === 'hang') for (const socket of pair) socket.pause()
  }

  #carry(from: Socket, to: Socket, pair: readonly [Socket, Socket]): void {
    from.setNoDelay(true)
    from.on('data', (bytes) => {
      if (!to.write(bytes)) from.pause()
    })
    to.on('drain', () => {
      if (this.#state === 'open') from.resume()
    })
    from.on('end', () => to.end())
    from.on('error', () => {
      // Its end follows.
    })
    from.on('close', () => {
      this.#pairs.delete(pair)
      if (!to.destroyed) to.destroySoon()
    })
  }
}
