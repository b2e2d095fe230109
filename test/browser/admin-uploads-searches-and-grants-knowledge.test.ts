/** An admin uploads a folder of Markdown as a zip, reads its report, searches it, and grants it to an agent. */
import t from 'tap'
import { borrowService } from '../support/lend-services.ts'
import { zipOf } from '../support/zip.ts'
import {
  AGENT,
  button,
  heading,
  newOrganization,
  row,
  STORY_CONFIG,
  signIn,
  withEachHand,
} from './support.ts'

const HANDBOOK = {
  'handbook/returns.md':
    '---\ntags: [sales, goods]\n---\n# Returns\n\nGoods come back within **30 days**. See [[Refunds|the money]] and [[Nowhere]].\n\n' +
    '| what | days |\n|---|---|\n| goods | 30 |\n\n<script>alert(1)</script> ![a picture](https://example.com/a.png)\n',
  'handbook/money/refunds.md': '# Refunds\n\nA refund takes <b>3</b> days.\n',
}

const zipFile = async (name: string, files: Readonly<Record<string, string>>) => ({
  name,
  mimeType: 'application/zip',
  buffer: Buffer.from(await zipOf(files)),
})

t.test('knowledge', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  const { database } = service
  await withEachHand(t, 'knowledge', async (t, { hand, page, look }) => {
    const user = await signIn(service, page, { name: 'Anna' })
    const account = await newOrganization(service, { name: 'Acme', role: 'admin' }, user)
    const agent = await database.agents.create(account.id, AGENT)
    await page.goto(`${service.baseUrl}/console/knowledge?account=${account.id}`)
    await heading(page, 'Knowledge').waitFor()
    await page.getByText('There is no knowledge base yet.').waitFor()
    await look('knowledge-empty')

    await hand.press(button(page, 'Create a knowledge base'))
    const create = page.getByRole('dialog', { name: 'Create a knowledge base' })
    await hand.write(create.getByLabel('Name'), 'Handbook')
    await hand.press(button(create, 'Create'))
    await heading(page, 'Handbook').waitFor()
    await page.getByText('Imports by the command tollgate kb import are not listed here.').waitFor()

    const upload = async (name: string, files: Readonly<Record<string, string>>) => {
      await hand.press(button(page, 'Upload'))
      const dialog = page.getByRole('dialog', { name: 'Upload to Handbook' })
      await dialog.getByLabel('A zip, or files').setInputFiles(await zipFile(name, files))
      await dialog.getByText('1 file, 0.0 MiB').waitFor()
      if (name === 'bad.zip') await look('knowledge-upload')
      await hand.press(button(dialog, 'Upload'))
      await dialog.waitFor({ state: 'detached' })
    }
    await upload('bad.zip', { 'bad/a.md': '---\nneeds_review: perhaps\n---\n' })
    await page.getByText('A file is bad; nothing was changed.').waitFor()
    await page.getByText('a.md:2').waitFor()
    await upload('handbook.zip', HANDBOOK)
    await page.getByText('2 added, 0 changed, 0 unchanged, 2 pages in all').waitFor()
    await hand.press(page.getByText('1 link leads to no page'))
    await page.getByText('returns.md: [[Nowhere]]').waitFor()
    await row(page, 'money/refunds.md').waitFor()

    await page.getByLabel('Grant to').selectOption('Agent Clerk')
    await hand.press(button(page, 'Grant'))
    await page.getByRole('listitem').getByText('Agent Clerk').waitFor()
    t.match(await database.knowledge.listBases(account.id), [
      { name: 'Handbook', pages: 2, readers: [agent.id] },
    ])
    await look('knowledge')

    await hand.write(page.getByLabel('Search the pages'), 'mony')
    await hand.press(button(page, 'Search'))
    await page.getByText('1 page found').waitFor()
    await page.locator('mark').getByText('money').waitFor()
    await look('knowledge-search')
    await hand.press(page.getByRole('link', { name: 'Returns' }))
    const drawer = page.getByRole('dialog', { name: 'Returns' })
    await drawer.getByRole('cell', { name: 'goods' }).waitFor()
    t.equal(await drawer.locator('script, img').count(), 0, 'markup of the author does nothing')
    await look('knowledge-page')
    await hand.press(drawer.getByRole('link', { name: 'the money' }))
    const linked = page.getByRole('dialog', { name: 'Refunds' })
    await linked.getByRole('link', { name: 'Returns' }).waitFor()
    await hand.press(button(linked, 'Close'))

    await page.goto(`${service.baseUrl}/console/agents?account=${account.id}&agent=${agent.id}`)
    const edited = page.getByRole('dialog', { name: 'Clerk' })
    await hand.press(edited.getByLabel('Handbook'))
    await hand.press(button(edited, 'Save as a draft'))
    await edited.getByText('Changes in the draft').waitFor()
    t.equal(await edited.getByText('Calls would be refused').count(), 0)
    await hand.press(button(edited, 'Close'))

    await page.goto(`${service.baseUrl}/console/knowledge?account=${account.id}`)
    await hand.press(page.getByRole('link', { name: 'Handbook' }))
    await hand.press(button(page, 'Revoke Agent Clerk'))
    await page.getByText('Only the keys of this account can read it.').waitFor()
    await hand.press(button(page, 'Delete'))
    const confirm = page.getByRole('dialog', { name: 'Delete Handbook' })
    await hand.write(confirm.getByLabel('Type Handbook to confirm'), 'Handbook')
    await hand.press(button(confirm, 'Delete'))
    await heading(page, 'Knowledge').waitFor()
    await page.getByText('There is no knowledge base yet.').waitFor()
  })
})
