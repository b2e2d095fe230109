import { setTimeout as delay } from 'node:timers/promises'
import { pin } from '../harness/children.ts'
import { UsageError } from '../harness/command-line.ts'
import { diskBytes } from '../harness/disk.ts'
import { allowedCores, processTree } from '../harness/proc.ts'
import { sayOnStderr } from '../harness/program.ts'
import { probe } from '../load/probe.ts'
import type { Endpoint } from '../load/request.ts'
import { type Subject, wholeTree } from './subject.ts'

/**
 * A gateway that someone else started on this machine, and that forwards chat completions to the bench upstream:
 * `--peer NAME=URL,model=M,key=K,pid=P[,header=NAME:VALUE][,does=TEXT][,version=TEXT][,folder=PATH]`.
 */

const ANSWER_LIMIT_MS = 600_000
const RETRY_MS = 2_000
const LOOPBACK = ['127.0.0.1', 'localhost']
const FIELDS = ['model', 'key', 'pid', 'header', 'does', 'version', 'folder']

/** Reads the option. Throws {@link UsageError} that says which part is wrong. */
export const readPeer = (text: string): Subject => {
  const wrong = (what: string) => new UsageError(`--peer ${text.slice(0, 40)}: ${what}`)
  const [, name, address, rest = ''] = /^([a-z][a-z0-9-]*)=(https?:\/\/[^,]+)(?:,(.*))?$/i.exec(text) ?? []
  if (name === undefined || address === undefined) throw wrong('it must begin with NAME=URL')
  const url = new URL(address)
  if (url.protocol !== 'http:' || !LOOPBACK.includes(url.hostname))
    throw wrong('the URL must be http://127.0.0.1:PORT/..., because the bench measures its processes')
  const fields = Map.groupBy(
    rest.split(',').map((part) => part.split(/=(.*)/s)),
    ([field]) => field,
  )
  const stranger = [...fields.keys()].find((field) => field !== '' && !FIELDS.includes(field!))
  if (stranger !== undefined) throw wrong(`"${stranger}" is not one of ${FIELDS.join(', ')}`)
  const read = (field: string) => fields.get(field)?.[0]?.[1]
  const model = read('model')
  const pid = Number(read('pid'))
  if (!model) throw wrong('model= is missing')
  if (!Number.isInteger(pid) || pid <= 0) throw wrong('pid= must be the process id of the gateway')
  const key = read('key')
  const headers = Object.fromEntries(
    (fields.get('header') ?? []).map(([, value = '']) => {
      const [header, content] = value.split(/:(.*)/s)
      if (!header || content === undefined) throw wrong('header= must be NAME:VALUE')
      return [header.toLowerCase(), content.trim()]
    }),
  )
  const endpoint: Endpoint = {
    port: Number(url.port || 80),
    path: `${url.pathname.replace(/\/$/, '')}/chat/completions`,
    headers: { ...(key && { authorization: `Bearer ${key}` }), ...headers },
    model,
    rewrites: true,
  }
  const folder = read('folder')
  return {
    name,
    title: name,
    work: read('does') ?? 'not given',
    holdsManyStreams: false,
    start: async ({ core }) => {
      await untilAnswered(name, endpoint)
      const before = allowedCores(pid)
      const move = (cores: readonly number[]) => {
        for (const each of processTree(pid)) pin(each, cores)
      }
      if (core !== null) move([core])
      return {
        version: read('version') ?? '',
        readyMs: null,
        installedBytes: folder === undefined ? null : diskBytes(folder),
        plain: endpoint,
        tls: null,
        processes: wholeTree(pid),
        settling: null,
        stop: async () => {
          if (core !== null) move(before)
        },
      }
    },
  }
}

/** Waits until the gateway gives the upstream's answer; says why it does not. */
const untilAnswered = async (name: string, endpoint: Endpoint): Promise<void> => {
  const deadline = performance.now() + ANSWER_LIMIT_MS
  for (let said = ''; ; await delay(RETRY_MS)) {
    const reason = await probe(endpoint, 'small', 0).then(
      () => null,
      (error: Error) => error.message || String(error),
    )
    if (reason === null) return
    if (performance.now() > deadline) throw new Error(`no right answer in 10 minutes: ${reason}`)
    if (reason !== said) sayOnStderr(`waiting for ${name}: ${reason}`)
    said = reason
  }
}
