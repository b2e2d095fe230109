import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { startChild } from '../harness/children.ts'
import { firstMessage } from '../harness/wait.ts'
import { FAST, plainEndpoint, type Subject, wholeTree } from './subject.ts'

const PROGRAM = fileURLToPath(new URL('uws-undici-proxy.ts', import.meta.url))

const versionOf = (name: string): string => {
  const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}

/** What the same server with an off-the-shelf client costs, without any of a gateway's work. */
export const uwsUndici: Subject = {
  name: 'uws-undici',
  title: 'uWebSockets.js + undici, bare',
  effort: FAST,
  holdsManyStreams: true,
  start: async (stage) => {
    const args = [PROGRAM, `http://127.0.0.1:${stage.upstream.port}`]
    const child = await startChild('uws-undici', process.execPath, args, { core: stage.core, messages: true })
    const port = await firstMessage<number>(child)
    return {
      version: `uWebSockets.js ${versionOf('uWebSockets.js')}, undici ${versionOf('undici')}`,
      plain: plainEndpoint(port),
      tls: null,
      processes: wholeTree(child.pid),
      settling: null,
      stop: child.stop,
    }
  },
}
