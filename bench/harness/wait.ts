import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Child } from './children.ts'

const READY_LIMIT_MS = 60_000
const READY_POLL_MS = 50

/** Polls until `ready` returns a value. Throws with the child's last output when it ends or takes too long. */
export const untilReady = async <T>(
  child: Child,
  ready: () => Promise<T | null> | T | null,
  limitMs: number = READY_LIMIT_MS,
): Promise<T> => {
  const deadline = Date.now() + limitMs
  for (;;) {
    const value = await ready()
    if (value !== null) return value
    if (child.ended()) throw new Error(`${child.name} ended while starting: ${child.lastOutput()}`)
    if (Date.now() > deadline)
      throw new Error(`${child.name} was not ready in ${limitMs / 1000} s: ${child.lastOutput()}`)
    await delay(READY_POLL_MS)
  }
}

/** Returns true when a process accepts connections at the port. */
export const accepts = (port: number): Promise<true | null> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(null))
  })

/** Returns the next IPC message of a child. Throws with its last output when it ends before. */
export const nextMessage = <T>(child: Child): Promise<T> =>
  new Promise((resolve, reject) => {
    const gone = (): void => reject(new Error(`${child.name} ended without an answer: ${child.lastOutput()}`))
    child.process.once('exit', gone)
    child.process.once('message', (message) => {
      child.process.off('exit', gone)
      resolve(message as T)
    })
  })
