import { createRequire } from 'node:module'
import t from 'tap'
import { openStore } from '../../../src/storage/open-store.ts'

const { cache } = createRequire(import.meta.url)
const isClientLoaded = (): boolean => Object.keys(cache).some((path) => path.includes('@aws-sdk'))

t.test('a service with a folder pays nothing for the bucket that it does not have', async (t) => {
  const settings = {
    objectStore: null,
    dataDir: t.testdir(),
    publicUrl: 'http://127.0.0.1:1',
    fileLinkKey: Buffer.alloc(32, 1),
  }
  const folder = await openStore(settings)
  t.equal(folder.servesLinks, false)
  await folder.ping()
  t.notOk(isClientLoaded())

  const objectStore = {
    endpoint: 'http://127.0.0.1:1',
    publicEndpoint: 'http://127.0.0.1:1',
    region: 'us-east-1',
    bucket: 'media',
    accessKeyId: 'a',
    secretAccessKey: 'b',
  }
  const bucket = await openStore({ ...settings, objectStore })
  t.equal(bucket.servesLinks, true)
  t.ok(isClientLoaded())
  t.match(await bucket.makeLink('images/a.png', Date.now() + 1000), 'http://127.0.0.1:1/media/images/a.png?')
  t.equal(bucket.makePermanentLink('images/a.png'), folder.makePermanentLink('images/a.png'))
})
