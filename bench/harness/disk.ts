import { execFileSync } from 'node:child_process'

/** Returns what files and folders take on disk together, in bytes, without caches. A file with several names counts once. */
export const diskBytes = (...paths: string[]): number =>
  execFileSync('du', ['-s', '--block-size=1', '--exclude=.cache', ...paths], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .reduce((sum, line) => sum + Number.parseInt(line, 10), 0)
