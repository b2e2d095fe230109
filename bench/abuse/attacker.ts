/** The hostile client, a worker thread: it repeats an attack until it receives a message. */
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { ATTACKS, type Attack } from './attacks.ts'

export interface AttackOrder {
  readonly port: number
  readonly path: string
  readonly keys: Readonly<Record<Attack['key'], string>>
  readonly name: string
}

/** How often each status was answered; `lost` where the connection ended without one; `closed` or `open` of unread ones. */
export type Answers = Record<string, number>

const PIECE_PAUSE_MS = 10
const ANSWER_LIMIT_MS = 10_000
/** So long a connection with unread answers is kept open. */
const UNREAD_HELD_MS = 2000
const STATUS = /^HTTP\/1\.1 (\d{3})/

const order = workerData as AttackOrder
const attack = ATTACKS.find(({ name }) => name === order.name)!
const body = attack.body()
const key = order.keys[attack.key]
const head = Buffer.from(
  `POST ${attack.path ?? order.path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n` +
    `${key === '' ? '' : `authorization: Bearer ${key}\r\n`}content-length: ${body.length}\r\nconnection: close\r\n\r\n`,
)
/** Of the requests that follow one another: sent in pieces, so that a closed connection ends them. */
const UNREAD_PIECE_REQUESTS = 100
const unreadHead =
  attack.unread &&
  `${attack.unread.method} ${attack.path ?? order.path} HTTP/1.1\r\nhost: 127.0.0.1\r\n` +
    `${key === '' ? '' : `authorization: Bearer ${key}\r\n`}\r\n`
const slowHead = `POST ${order.path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: `
/** Longer than an attack lasts. */
const slowField = Buffer.alloc(10_000, 'a')
const answers: Answers = {}
const sockets = new Set<Socket>()
let isOver = false

async function sendOnce(): Promise<void> {
  const socket = connect(order.port, '127.0.0.1')
  sockets.add(socket)
  let text = ''
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.on('error', () => undefined)
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1')
    if (STATUS.test(text)) socket.destroy()
  })
  socket.setTimeout(ANSWER_LIMIT_MS, () => socket.destroy())
  socket.write(attack.headIsSlow ? slowHead : head)
  if (attack.headIsSlow) await sendSlowly(socket, slowField, 1)
  else await sendSlowly(socket, body, attack.pieceBytes ?? body.length)
  if (isOver) socket.destroy()
  await ended
  sockets.delete(socket)
  const status = STATUS.exec(text)?.[1] ?? 'lost'
  if (!isOver || status !== 'lost') answers[status] = (answers[status] ?? 0) + 1
}

async function sendSlowly(socket: Socket, bytes: Buffer, step: number): Promise<void> {
  for (let at = 0; at < bytes.length && !socket.destroyed && !isOver; at += step) {
    socket.write(bytes.subarray(at, at + step))
    if (step < bytes.length) await delay(PIECE_PAUSE_MS)
  }
}

/** Counts connections, as `closed` or, where all requests were sent, `open`. */
async function sendUnread(text: string, requests: number): Promise<void> {
  const socket = connect(order.port, '127.0.0.1')
  sockets.add(socket)
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.on('error', () => undefined)
  const piece = Buffer.from(text.repeat(UNREAD_PIECE_REQUESTS))
  for (let sent = 0; sent < requests && !socket.destroyed && !isOver; sent += UNREAD_PIECE_REQUESTS) {
    socket.write(piece)
    await delay(1)
  }
  if (!isOver) await Promise.race([ended, delay(UNREAD_HELD_MS)])
  const state = socket.destroyed ? 'closed' : 'open'
  if (!isOver) answers[state] = (answers[state] ?? 0) + 1
  socket.destroy()
  sockets.delete(socket)
}

let nextAt = performance.now()
/** Waits for the turn of the next request, where the attack has a pace. */
async function turn(everyMs: number): Promise<void> {
  nextAt = Math.max(nextAt + everyMs, performance.now())
  await delay(nextAt - performance.now())
}

async function sendUntilOver(): Promise<void> {
  while (!isOver) {
    if (attack.everyMs !== undefined) await turn(attack.everyMs)
    if (isOver) return
    if (attack.unread === undefined) await sendOnce()
    else await sendUnread(unreadHead!, attack.unread.requests)
  }
}

parentPort!.once('message', async () => {
  isOver = true
  for (const socket of sockets) socket.destroy()
  await all
  parentPort!.postMessage(answers)
})
parentPort!.postMessage('ready')
const all = Promise.all(Array.from({ length: attack.connections }, sendUntilOver))
