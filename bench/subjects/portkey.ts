import { join } from 'node:path'
import { freePort } from '../../src/embedded/ports.ts'
import { startChild } from '../harness/children.ts'
import { diskBytes } from '../harness/disk.ts'
import { findPackage } from '../harness/optional.ts'
import { accepts, untilReady } from '../harness/wait.ts'
import { plainEndpoint, type Subject, wholeTree } from './subject.ts'

const VERSION = '1.15.2'
/** With later versions the gateway answers every stream with 500: github.com/Portkey-AI/gateway/issues/1389. */
const OVERRIDES = { '@hono/node-server': '1.14.1' }

/** Portkey's open-source gateway from npm. Its headers select the bench upstream. */
export const portkey: Subject = {
  name: 'portkey',
  title: 'Portkey gateway',
  work: 'chooses a provider; keeps no log',
  holdsManyStreams: false,
  start: async (stage) => {
    const { folder, version } = findPackage(stage.cache, '@portkey-ai/gateway', VERSION, OVERRIDES)
    const port = await freePort()
    const args = [join(folder, 'build/start-server.js'), `--port=${port}`, '--headless']
    const env = { NODE_ENV: 'production' }
    const startedAt = performance.now()
    const child = await startChild('portkey', process.execPath, args, { core: stage.core, env, cwd: folder })
    await untilReady(child, () => accepts(port))
    return {
      version,
      readyMs: performance.now() - startedAt,
      installedBytes: diskBytes(join(folder, '../../..')),
      plain: {
        ...plainEndpoint(port),
        headers: {
          authorization: 'Bearer bench',
          'x-portkey-provider': 'openai',
          'x-portkey-custom-host': `http://127.0.0.1:${stage.upstream.port}/v1`,
        },
      },
      tls: null,
      processes: wholeTree(child.pid),
      settling: null,
      stop: child.stop,
    }
  },
}
