/** The HTTP server is native code that a third party packs: only the build that was reviewed is loaded. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'

const PACKAGE = new URL('../../../node_modules/uWebSockets.js/', import.meta.url)
const RECORDED = new URL('../../fixtures/uws-pack-20.0.8.sha256', import.meta.url)
const IS_CODE = /\.(?:[cm]?js|node)$/

const sumOf = (file: string): string =>
  createHash('sha256')
    .update(readFileSync(new URL(file, PACKAGE)))
    .digest('hex')

t.test('each file that can be loaded has the recorded checksum, and there is no other', (t) => {
  const files = readdirSync(PACKAGE, { recursive: true, encoding: 'utf8' }).filter((file) =>
    IS_CODE.test(file),
  )
  const found = files.map((file) => `${sumOf(file)}  ${file}`)
  const recorded = readFileSync(RECORDED, 'utf8').trim().split('\n')
  t.same(found.sort(), recorded.filter((line) => IS_CODE.test(line)).sort())
  t.ok(found.some((line) => line.includes('uws_linux_x64_127.node')))
  t.end()
})

t.test('one file of the service imports it', (t) => {
  const rooms = ['src', 'pipelines', 'schemas']
  const importers = rooms.flatMap((room) => {
    const folder = new URL(`../../../${room}/`, import.meta.url)
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.ts'),
    )
    return files
      .filter((file) => readFileSync(new URL(file, folder), 'utf8').includes("from 'uWebSockets.js'"))
      .map((file) => `${room}/${file}`)
  })
  t.same(importers, ['src/http/uws.ts'])
  t.end()
})
