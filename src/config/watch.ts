/** Takes up a changed configuration file while the service runs. */
import { statSync } from 'node:fs'
import type { ConfigFile } from '../../schemas/config/file.ts'
import { type LoadResult, loadConfig, readConfigText } from './load.ts'
import type { Problem } from './problem.ts'
import type { Environment } from './source.ts'

/**
 * The file is polled rather than watched: one stat a period costs nothing, and it finds a file that an editor writes
 * in place, replaces by rename, or a ConfigMap swaps behind a link, on every file system.
 */
const CONFIG_POLL_INTERVAL_MS = 400

interface WatchOptions {
  readonly env: Environment
  /** The result that is in force, so that a change between loading and watching is not missed. */
  readonly loaded: LoadResult
  readonly onChange: (config: ConfigFile) => void
  /** Called with the problems of new content, once for each content. The present configuration stays in force. */
  readonly onRefused: (problems: readonly Problem[]) => void
  readonly pollIntervalMs?: number
}

interface ConfigWatch {
  close(): void
}

/** Watches the file. A change is used once the file was read twice with the same content, so within a second. */
export function watchConfig(path: string, options: WatchOptions): ConfigWatch {
  const { env, onChange, onRefused, pollIntervalMs = CONFIG_POLL_INTERVAL_MS } = options
  let { digest } = options.loaded
  let seen = ''
  let settled = ''

  const look = () => {
    const before = seen
    seen = readFingerprint(path)
    if (seen !== before || seen === settled) return
    const read = readConfigText(path)
    // Written to while it was read: whatever was read may be half of it.
    if (readFingerprint(path) !== seen) return
    // What could not be read, such as by a process without a free descriptor, is read again: the file stays as it is.
    settled = read.digest === '' ? '' : seen
    if (read.digest === digest) return
    digest = read.digest
    const result = loadConfig(read, env)
    if (result.ok) onChange(result.config)
    else onRefused(result.problems)
  }
  const timer = setInterval(look, pollIntervalMs)
  timer.unref()
  return { close: () => clearInterval(timer) }
}

/** Follows links. Changes whenever the content may have; for a file that cannot be reached it is the reason. */
function readFingerprint(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unreachable'
  }
}
