import { App, type HttpResponse, type us_socket, us_socket_local_port } from 'uWebSockets.js'

/** A call in a proxy that does nothing but forward. */
export interface BareCall {
  /** Called when the client has disconnected. */
  abort(): void
}

/** Serves chat calls on a free port and calls `begin` for each with its body. Returns the port. */
export const serveBare = (begin: (response: HttpResponse, body: Buffer) => BareCall): Promise<number> =>
  new Promise((resolve, reject) => {
    App()
      .post('/v1/chat/completions', (response) => {
        const pieces: Buffer[] = []
        let call: BareCall | null = null
        response.onAborted(() => call?.abort())
        response.onData((piece, last) => {
          pieces.push(Buffer.from(piece.slice(0))) // uWebSockets.js reuses the buffer after this call.
          if (last) call = begin(response, pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces))
        })
      })
      .listen('127.0.0.1', 0, (socket) => {
        if (!socket) return reject(new Error('no port'))
        resolve(us_socket_local_port(socket as unknown as us_socket)) // a listen socket is a socket
      })
  })

/** Sends the ports to the bench, and ends with it. */
export const sendPorts = (ports: readonly number[]): void => {
  process.send!(ports)
  process.once('disconnect', () => process.exit(0))
}
