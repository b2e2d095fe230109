import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../src/embedded/ports.ts'
import { startChild } from '../harness/children.ts'
import { diskBytes } from '../harness/disk.ts'
import { findPythonPackage } from '../harness/optional.ts'
import { untilReady } from '../harness/wait.ts'
import { plainEndpoint, type Subject, wholeTree } from './subject.ts'

/** Never 1.107.0, which was a compromised release. Packages that later ones need are not on PyPI. */
const VERSION = '1.108.7'
const KEY = 'sk-bench-of-tollgate'
/** Its imports take long on a slow core. */
const READY_LIMIT_MS = 180_000
/** What LiteLLM's page "Production Best Practices" recommends, for one core and without a database. */
const ENVIRONMENT = { LITELLM_MODE: 'PRODUCTION', LITELLM_LOG: 'ERROR' }
const SETTINGS = {
  general_settings: { master_key: KEY, proxy_batch_write_at: 60, database_connection_pool_limit: 10 },
  litellm_settings: { request_timeout: 600, set_verbose: false, json_logs: true },
}
const WORKERS = ['--num_workers', '1']

const isAlive = (port: number): Promise<true | null> =>
  fetch(`http://127.0.0.1:${port}/health/liveliness`).then(
    ({ ok }) => ok || null,
    () => null,
  )

/** LiteLLM's proxy from PyPI, one worker, with the settings that its documentation recommends for production. */
export const litellm: Subject = {
  name: 'litellm',
  title: 'LiteLLM proxy',
  work: 'computes a cost; no database here',
  holdsManyStreams: false,
  start: async (stage) => {
    const { folder, program } = findPythonPackage(stage.cache, 'litellm', VERSION, 'proxy')
    const port = await freePort()
    const file = join(stage.folder, 'config.yaml')
    const model = {
      model_name: 'bench',
      litellm_params: {
        model: 'openai/bench',
        api_base: `http://127.0.0.1:${stage.upstream.port}/v1`,
        api_key: 'bench',
      },
    }
    writeFileSync(file, JSON.stringify({ model_list: [model], ...SETTINGS })) // JSON is valid YAML.
    const args = ['--config', file, '--host', '127.0.0.1', '--port', String(port), ...WORKERS]
    const startedAt = performance.now()
    const child = await startChild('litellm', program, args, {
      core: stage.core,
      env: { ...ENVIRONMENT, ...stage.env },
      cwd: stage.folder,
    })
    await untilReady(child, () => isAlive(port), READY_LIMIT_MS)
    return {
      version: VERSION,
      readyMs: performance.now() - startedAt,
      installedBytes: diskBytes(folder),
      settings: [JSON.stringify({ ...SETTINGS, ...ENVIRONMENT }).replaceAll(KEY, '…'), WORKERS.join(' ')],
      plain: {
        ...plainEndpoint(port),
        headers: { authorization: `Bearer ${KEY}` },
        rewrites: true,
      },
      tls: null,
      processes: wholeTree(child.pid),
      settling: null,
      stop: child.stop,
    }
  },
}
