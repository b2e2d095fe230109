/** What a third party's bucket server needs to be one that tests can rely on. */
import { rm, stat } from 'node:fs/promises'
import type { S3rverStore } from 's3rver'
import { until } from './eventually.ts'

/** The server (3.7.1) answers a PUT before the file is written: a GET behind it could meet the old one, or half. */
export function answerWhenWritten(store: S3rverStore): void {
  const putObject = store.putObject.bind(store)
  store.putObject = async (object) => {
    const path = store.getResourcePath(object.bucket, object.key, 'object')
    await rm(path, { force: true })
    const put = await putObject(object)
    const sizeNow = () =>
      stat(path).then(
        ({ size }) => size,
        () => null,
      )
    await until('the object is on the disk', async () => (await sizeNow()) === put.size)
    return put
  }
}
