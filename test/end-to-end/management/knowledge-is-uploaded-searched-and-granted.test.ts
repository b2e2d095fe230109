/** A folder of Markdown comes in as a zip, is reported on, read, searched, granted and taken away. */
import t from 'tap'
import { eventually } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { signIn } from '../../support/manage.ts'
import { zipOf } from '../../support/zip.ts'
import { callConfig } from '../support.ts'

const HANDBOOK = {
  'handbook/returns.md': '# Returns\n\nGoods come back within 30 days. See [[Refunds]] and [[Nowhere]].\n',
  'handbook/money/refunds.md':
    '---\ntags: [money]\ncolour: red\n---\n# Refunds\n\nA refund takes <b>3</b> days.\n',
  'handbook/.hidden.md': '# Hidden\n',
  '__MACOSX/handbook/._returns.md': 'noise',
}

t.test('knowledge', async (t) => {
  const service = await borrowService(t, callConfig({ fast: { simulate: 'tokens=2' } }))
  const owner = await signIn(service)
  const stranger = await signIn(service)
  const operator = await signIn(service, { role: 'operator' })
  const { body: organization } = await owner.send('POST', '/organizations', { name: 'Acme' })
  const account_id: string = organization.id
  const { body: base, status } = await owner.send('POST', '/knowledge-bases', {
    account_id,
    name: 'Handbook',
  })
  t.equal(status, 201)
  const path = `/knowledge-bases/${base.id}`
  const reading = `account_id=${account_id}`
  const ended = (importId: string, of = path) =>
    eventually('the import ends', async () => {
      const { body } = await owner.send('GET', `${of}/imports/${importId}`)
      return body.ended_at === null ? undefined : body
    })
  const upload = async (files: Parameters<typeof owner.upload>[1], query = '') => {
    const { status, body } = await owner.upload(`${path}/imports${query}`, files)
    t.match({ status, body }, { status: 201, body: { knowledge_base_id: base.id } })
    return ended(body.id)
  }

  await t.test('a zip is imported with a report', async (t) => {
    const done = await upload({ 'handbook.zip': await zipOf(HANDBOOK) })
    t.match(done, {
      state: 'done',
      files: ['handbook.zip'],
      report: {
        pages: 2,
        added: 2,
        changed: 0,
        unresolved_links: { count: 1, first: [{ link: 'Nowhere' }] },
      },
    })
    t.equal(done.problems.length, 0)
    t.same(done.report.ignored_fields, { colour: 1 })
    t.same(done.report.unresolved_links.first[0].path, 'returns.md', 'the folder of all files is the top')
  })

  await t.test('the same files one by one are the same pages; prune removes what is gone', async (t) => {
    const { body: before } = await owner.send('GET', `${path}/pages?${reading}`)
    const returns = HANDBOOK['handbook/returns.md']
    const kept = await upload({ 'returns.md': returns })
    t.match(kept.report, { pages: 2, unchanged: 1, gone: 1, pruned: false, gone_paths: ['money/refunds.md'] })
    t.same((await owner.send('GET', `${path}/pages?${reading}`)).body, before)
    const pruned = await upload({ 'returns.md': returns, 'b/new.md': '# New\n' }, '?prune=true')
    t.match(pruned.report, { pages: 2, added: 1, gone: 1, pruned: true })
    const restored = await upload({ 'handbook.zip': await zipOf(HANDBOOK) }, '?prune=true')
    t.match(restored.report, { pages: 2, added: 1, gone: 1 })
  })

  await t.test('fields whose names no database can keep are reported without what it cannot', async (t) => {
    const odd = await upload({ 'odd.md': '---\n"a\\0b": 1\n"c\\ud800": 2\n---\n# Odd\n' })
    t.match(odd, { state: 'done', report: { added: 1, ignored_fields: { ab: 1, 'c\ufffd': 1 } } })
    const restored = await upload({ 'handbook.zip': await zipOf(HANDBOOK) }, '?prune=true')
    t.match(restored.report, { pages: 2, gone: 1 })
  })

  await t.test('bad files are named with their lines, and change nothing', async (t) => {
    const bad = {
      'a.md': '# A\n',
      'b.md': '---\nneeds_review: perhaps\n---\n# B\n',
      'c.md': '---\ntags: [\n---\n',
    }
    const failed = await upload({ 'bad.zip': await zipOf(bad) })
    t.match(failed, { state: 'failed', error: '2 files are bad; nothing was changed.', report: null })
    t.match(failed.problems, [{ file: 'b.md', line: 2 }, { file: 'c.md' }])
    const noZip = await upload({ 'bad.zip': 'this is no zip' })
    t.match(noZip, {
      state: 'failed',
      problems: [{ file: 'bad.zip', line: 1, message: /cannot be unpacked/ }],
    })
    t.match(await upload({ '../../out.md': '# Out' }), {
      state: 'failed',
      problems: [{ message: /leads out/ }],
    })
    t.match(await upload({ 'only.txt': 'text' }), { state: 'failed', error: /no Markdown file/ })
    t.equal((await owner.send('GET', path)).body.pages, 2)
    t.match(await owner.send('POST', `${path}/imports`, {}), { status: 400 }, 'no form')
    t.match(await owner.upload(`${path}/imports`, {}), { status: 400 }, 'no file')
    const { body: listed } = await owner.send('GET', `${path}/imports?limit=4`)
    t.equal(listed.data.length, 4)
  })

  await t.test('pages are listed by path, read with their backlinks, and searched with marks', async (t) => {
    const first = await owner.send('GET', `${path}/pages?${reading}&limit=1`)
    t.match(first.body, {
      has_more: true,
      data: [{ path: 'money/refunds.md', title: 'Refunds', tags: ['money'] }],
    })
    const second = await owner.send(
      'GET',
      `${path}/pages?${reading}&limit=1&cursor=${first.body.next_cursor}`,
    )
    t.match(second.body, { has_more: false, data: [{ path: 'returns.md', title: 'Returns' }] })
    const { id } = first.body.data[0]
    const page = await owner.send('GET', `${path}/pages/${id}?${reading}`)
    t.match(page.body, { title: 'Refunds', backlinks: [{ title: 'Returns' }], body: /takes <b>3<\/b> days/ })
    const found = await owner.send('GET', `${path}/search?${reading}&q=refnd`)
    t.match(found.body, { total_hits: 2 })
    const hit = found.body.results.find((result: { id: string }) => result.id === id)
    t.match(hit.snippet, /<mark>/)
    t.notMatch(hit.snippet, '<b>', 'all else is escaped')
    t.match(await owner.send('GET', `${path}/pages/page_x?${reading}`), { status: 404 })
    t.match(await owner.send('GET', `${path}/search?${reading}&q=`), { status: 400 })
  })

  await t.test('it is granted to those who are near, and to nobody else by its owner', async (t) => {
    const file = { name: 'Clerk', model: 'fast', persona: 'A clerk.', knowledge: [base.id] }
    const { body: agent } = await owner.send('POST', '/agents', { account_id, file })
    const granted = await owner.send('POST', `${path}/readers`, { reader_id: agent.id })
    t.match(granted, { status: 200, body: { readers: [agent.id] } })
    const refused = await owner.send('POST', `${path}/readers`, { reader_id: stranger.user.accountId })
    t.match(refused, { status: 404, body: { error: { message: /neither an agent nor a member/ } } })
    const own = await owner.send('POST', `${path}/readers`, { reader_id: owner.user.accountId })
    t.match(own.body.readers, [agent.id, owner.user.accountId])
    const theirs = `account_id=${owner.user.accountId}`
    const { body: readable } = await owner.send('GET', `/knowledge-bases?${theirs}`)
    t.match(readable.granted, [{ id: base.id, name: 'Handbook', pages: 2 }])
    t.equal((await owner.send('GET', `${path}/pages?${theirs}`)).body.data.length, 2)
    t.match(await operator.send('POST', `${path}/readers`, { reader_id: stranger.user.accountId }), {
      status: 200,
    })
    const asStranger = `account_id=${stranger.user.accountId}`
    t.equal((await stranger.send('GET', `${path}/pages?${asStranger}`)).status, 200)
    t.equal((await stranger.send('DELETE', path)).status, 404)
    await owner.send('DELETE', `${path}/readers/${stranger.user.accountId}`)
    t.equal((await stranger.send('GET', `${path}/pages?${asStranger}`)).status, 404)
  })

  await t.test('the own base of an account needs no creating; deletion ends it', async (t) => {
    const started = await owner.upload(`/knowledge-bases/default/imports?${reading}`, { 'a.md': '# A\n' })
    t.equal(started.status, 201)
    const own = `/knowledge-bases/${started.body.knowledge_base_id}`
    t.match(await ended(started.body.id, own), { state: 'done', report: { pages: 1 } })
    t.match((await owner.send('GET', own)).body, { is_default: true, pages: 1 })
    t.equal((await owner.upload('/knowledge-bases/default/imports', { 'a.md': '# A\n' })).status, 400)
    t.match(await owner.send('GET', `${path}/imports/${started.body.id}`), { status: 404 }, 'of another base')
    t.match(await operator.send('GET', `/jobs/${started.body.id}`), { status: 404 })
    t.equal((await owner.send('DELETE', own)).status, 200)
    t.equal((await owner.send('GET', own)).status, 404)
  })
})
