/** An admin uploads a folder of Markdown as a zip, reads its report, searches it, and grants it to an agent. */
import t from 'tap'
import { inspectPage, withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import { zipOf } from '../support/zip.ts'
import { button, heading, row, STORY_CONFIG, signIn } from './support.ts'

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
  await withPage(t, 'knowledge', async (page) => {
    const user = await signIn(service, page, { name: 'Anna' })
    const { account } = await database.createAccount({ name: 'Acme', kind: 'organization', credit: 0n })
    await database.putMember(account.id, user.accountId, 'admin')
    const agent = await database.createAgent(account.id, {
      name: 'Clerk',
      model: 'fast',
      persona: 'A clerk.',
      temperature: null,
      knowledge: [],
      web_search: false,
      image_generation: false,
    })
    await page.goto(`${service.baseUrl}/console/knowledge?account=${account.id}`)
    await heading(page, 'Knowledge').waitFor()
    await page.getByText('There is no knowledge base yet.').waitFor()
    await inspectPage(t, page, 'knowledge-empty')

    await button(page, 'Create a knowledge base').click()
    const create = page.getByRole('dialog', { name: 'Create a knowledge base' })
    await create.getByLabel('Name').fill('Handbook')
    await button(create, 'Create').click()
    await heading(page, 'Handbook').waitFor()

    const upload = async (name: string, files: Readonly<Record<string, string>>) => {
      await button(page, 'Upload').click()
      const dialog = page.getByRole('dialog', { name: 'Upload into Handbook' })
      await dialog.getByLabel('A zip, or files').setInputFiles(await zipFile(name, files))
      await dialog.getByText('1 file, 0.0 MiB').waitFor()
      if (name === 'bad.zip') await inspectPage(t, page, 'knowledge-upload')
      await button(dialog, 'Upload').click()
      await dialog.waitFor({ state: 'detached' })
    }
    await upload('bad.zip', { 'bad/a.md': '---\nneeds_review: perhaps\n---\n' })
    await page.getByText('A file is bad; nothing was changed.').waitFor()
    await page.getByText('a.md:2').waitFor()
    await upload('handbook.zip', HANDBOOK)
    await page.getByText('2 added, 0 changed, 0 unchanged, 2 pages in all').waitFor()
    await page.getByText('1 link leads to no page').click()
    await page.getByText('returns.md: [[Nowhere]]').waitFor()
    await row(page, 'money/refunds.md').waitFor()

    await page.getByLabel('Grant to').selectOption('Agent Clerk')
    await button(page, 'Grant').click()
    await page.getByRole('listitem').getByText('Agent Clerk').waitFor()
    t.match(await database.listBases(account.id), [{ name: 'Handbook', pages: 2, readers: [agent.id] }])
    await inspectPage(t, page, 'knowledge')

    await page.getByLabel('Search the pages').fill('mony')
    await button(page, 'Search').click()
    await page.getByText('1 page found').waitFor()
    await page.locator('mark').getByText('money').waitFor()
    await inspectPage(t, page, 'knowledge-search')
    await page.getByRole('link', { name: 'Returns' }).click()
    const drawer = page.getByRole('dialog', { name: 'Returns' })
    await drawer.getByRole('cell', { name: 'goods' }).waitFor()
    t.equal(await drawer.locator('script, img').count(), 0, 'markup of the author does nothing')
    await inspectPage(t, page, 'knowledge-page')
    await drawer.getByRole('link', { name: 'the money' }).click()
    const linked = page.getByRole('dialog', { name: 'Refunds' })
    await linked.getByRole('link', { name: 'Returns' }).waitFor()
    await button(linked, 'Close').click()

    await page.goto(`${service.baseUrl}/console/agents?account=${account.id}&agent=${agent.id}`)
    const edited = page.getByRole('dialog', { name: 'Clerk' })
    await edited.getByLabel('Handbook').check()
    await button(edited, 'Save as a draft').click()
    await edited.getByText('The draft changes').waitFor()
    t.equal(await edited.getByText('Calls would be refused').count(), 0)
    await button(edited, 'Close').click()

    await page.goto(`${service.baseUrl}/console/knowledge?account=${account.id}`)
    await page.getByRole('link', { name: 'Handbook' }).click()
    await button(page, 'Revoke Agent Clerk').click()
    await page.getByText('The keys of this account alone read it.').waitFor()
    await button(page, 'Delete').click()
    const confirm = page.getByRole('dialog', { name: 'Delete Handbook' })
    await confirm.getByLabel('Type Handbook to confirm').fill('Handbook')
    await button(confirm, 'Delete').click()
    await heading(page, 'Knowledge').waitFor()
    await page.getByText('There is no knowledge base yet.').waitFor()
  })
})
