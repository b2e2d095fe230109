/** The check of the container image, run as a container runtime runs it. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const DOCKERFILE = new URL('../../../Dockerfile', import.meta.url)

/** Returns whether the service of this data directory is healthy. */
export function isHealthy(dataDir: string): boolean {
  const [, command = ''] = /^HEALTHCHECK .*\\\n +CMD (\[.*\])$/m.exec(readFileSync(DOCKERFILE, 'utf8')) ?? []
  const [program, ...args]: string[] = JSON.parse(command)
  if (program !== 'node') throw new Error(`The check of the image runs ${program}`)
  return spawnSync(process.execPath, args, { env: { TOLLGATE_DATA_DIR: dataDir } }).status === 0
}
