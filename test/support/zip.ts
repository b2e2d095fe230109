/** Zip files for tests. */
import { buffer } from 'node:stream/consumers'
import yazl from 'yazl'

/** Returns a zip of files, by path. */
export async function zipOf(
  files: Readonly<Record<string, string>>,
  options: { readonly compress?: boolean } = {},
): Promise<Uint8Array<ArrayBuffer>> {
  const zip = new yazl.ZipFile()
  for (const [path, content] of Object.entries(files)) zip.addBuffer(Buffer.from(content), path, options)
  zip.end()
  return new Uint8Array(await buffer(zip.outputStream))
}
