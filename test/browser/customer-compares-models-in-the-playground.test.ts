/** A customer tries models: Markdown, two side by side, an answer that breaks off, the history, and the call as code. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { inspectPage, withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import { testConfig } from '../support/service.ts'
import { button, link, signIn } from './support.ts'

const CONFIG = testConfig({
  listed: { simulate: `text=${encodeURIComponent('**Bold** <b>raw</b>')},prompt_tokens=10,tokens=5` },
  other: { simulate: 'text=Another%20voice,prompt_tokens=10,tokens=5' },
  torn: { simulate: 'tokens=50,fault=reset:2000' },
})

t.test('playground', async (t) => {
  const service = await borrowService(t, CONFIG)
  await withPage(t, 'playground', async (page) => {
    const user = await signIn(service, page, { name: 'Pia' })
    await link(page, 'Playground').click()
    const model = page.getByLabel('Model', { exact: true })
    const message = page.getByLabel('Message')
    await model.selectOption('listed')
    await page.getByLabel('Compare with').selectOption('other')
    await message.fill('Hello, both!')
    await message.press('Control+Enter')
    await page.locator('strong', { hasText: 'Bold' }).waitFor()
    await page.getByRole('region', { name: 'listed' }).getByText('<b>raw</b>').waitFor()
    await page.getByRole('region', { name: 'other' }).getByText('Another voice').waitFor()
    await page.getByText('credits charged').nth(1).waitFor()
    await inspectPage(t, page, 'playground-compared')

    await page.reload()
    await page.locator('strong', { hasText: 'Bold' }).waitFor()
    await button(page, 'New conversation').click()
    await page.getByLabel('Compare with').selectOption('')
    await model.selectOption('torn')
    await message.fill('Break!')
    await message.press('Control+Enter')
    await page.getByRole('alert').filter({ hasText: 'The answer broke off before its end.' }).waitFor()
    await page.getByText('credits charged').waitFor()
    await inspectPage(t, page, 'playground-broken')
    await page.getByRole('button', { name: /^Hello, both!/ }).click()
    await page.locator('strong', { hasText: 'Bold' }).waitFor()

    await page.getByLabel('Instructions').fill(`It's \`quoted\`, "twice"`)
    const { raw } = await service.database.keys.create({ accountId: user.accountId, name: 'code' })
    const env = { ...process.env, TOLLGATE_KEY: raw }
    for (const [language, program] of [
      ['Python', ['python3', '-c', 'import ast, sys; ast.parse(sys.argv[1])']],
      ['TypeScript', null],
      ['Go', null],
      ['Ruby', null],
      ['curl', ['bash', '-c']],
    ] as const) {
      await page.getByRole('tab', { name: language }).click()
      const code = (await page.getByRole('tabpanel', { name: language }).locator('pre').textContent()) ?? ''
      t.match(code, 'quoted')
      if (program === null) continue
      const [command, ...args] = program
      const { stdout } = await promisify(execFile)(command, [...args, code], { env })
      if (language === 'curl') t.match(stdout, 'data: ')
    }
  })
})
