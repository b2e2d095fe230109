/** Reads a public price list: a file of this machine, or a URL. */
import { readFile } from 'node:fs/promises'
import { type FetchLimits, guardedFetch } from '../../fetch/guarded-fetch.ts'

/** @param limits of a URL, in place of the usual ones */
export async function readList(source: string, limits?: Pick<FetchLimits, 'isAllowed'>): Promise<string> {
  if (!/^https?:\/\//.test(source)) return readFile(source, 'utf8').catch(cannotRead(source))
  return String((await guardedFetch(source, limits)).bytes)
}

const cannotRead =
  (path: string) =>
  ({ code, message }: NodeJS.ErrnoException): never => {
    throw new Error(
      `The price list ${path} cannot be read: ${code === 'ENOENT' ? 'there is no such file' : message}.`,
    )
  }
