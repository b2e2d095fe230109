/** An owner makes a token for a program, calls the management API with it, and revokes it; an operator does the same. */
import t from 'tap'
import { inspectPage, withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import { MANAGE } from '../support/manage.ts'
import { button, heading, link, row, STORY_CONFIG, signIn } from './support.ts'

const NAME = 'nightly report'

t.test('a management token', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  for (const scope of ['account', 'installation'] as const)
    await t.test(`of the ${scope}`, (t) =>
      withPage(t, `token of ${scope}`, async (page) => {
        const person = scope === 'account' ? { name: 'Olga' } : ({ name: 'Oleg', role: 'operator' } as const)
        const { accountId } = await signIn(service, page, person)
        await link(page, 'Management tokens').click()
        await heading(page, 'Management tokens').waitFor()
        if (scope === 'installation') {
          await page.getByLabel('Scope').selectOption('The installation')
          await page.getByText('Tokens of the installation').first().waitFor()
        } else {
          await page.getByText('There are no tokens yet.').waitFor()
          await inspectPage(t, page, 'tokens-empty')
        }
        await button(page, 'Create a token').click()
        const form = page.getByRole('dialog', { name: 'Create a token' })
        await form.getByLabel('Name').fill(NAME)
        await form.getByLabel('billing: move money').check()
        await inspectPage(t, page, 'tokens-create')
        await button(form, 'Create').click()
        const shown = page.getByRole('dialog', { name: NAME })
        await shown.getByText(/tgm_/).first().waitFor()
        const [token = ''] = /tgm_[0-9a-f]{64}/.exec((await shown.textContent()) ?? '') ?? []
        await button(shown, 'Done').click()
        const status = async () => {
          const headers = { authorization: `Bearer ${token}` }
          return (await fetch(`${service.baseUrl}${MANAGE}/keys?account_id=${accountId}`, { headers })).status
        }
        t.equal(await status(), 200)
        await row(page, NAME).getByText('read, billing').waitFor()
        await inspectPage(t, page, 'tokens')

        await button(row(page, NAME), 'Revoke').click()
        const question = page.getByRole('dialog', { name: `Revoke ${NAME}` })
        await question.getByRole('textbox').fill(NAME)
        await button(question, 'Revoke').click()
        await row(page, NAME).getByText('Revoked').waitFor()
        t.equal(await status(), 401)
      }),
    )
})
