/** The owner of an organization writes an agent, tries it, publishes it, and edits it as a draft. */
import t from 'tap'
import { ONE_CREDIT } from '../../schemas/money.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, heading, link, newOrganization, row, STORY_CONFIG, signIn, withEachHand } from './support.ts'

t.test('agents', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  const { database } = service
  await withEachHand(t, 'agents', async (t, { hand, page, look }) => {
    const user = await signIn(service, page, { name: 'Anna' })
    const account = await newOrganization(service, { name: 'Acme', credit: 1_000_000n * ONE_CREDIT }, user)
    await page.goto(`${service.baseUrl}/console/agents?account=${account.id}`)
    await heading(page, 'Agents').waitFor()
    await page.getByText('This organization has no agents yet.').waitFor()
    await look('agents-empty')

    await hand.press(button(page, 'Create an agent'))
    const dialog = page.getByRole('dialog', { name: 'Create an agent' })
    await hand.write(dialog.getByLabel('Name'), 'Clerk')
    await dialog.getByLabel('Model').selectOption('fast')
    await hand.write(dialog.getByLabel('Persona'), 'You are a clerk.')
    await hand.press(button(dialog, 'Create'))
    const drawer = page.getByRole('dialog', { name: 'Clerk' })
    await drawer.getByText('Not published').waitFor()
    await hand.write(drawer.getByLabel('Question'), 'Who are you?')
    await hand.press(button(drawer, 'Send'))
    await drawer.getByText('Hello from here').waitFor()
    const [trial] = await database.keys.list(account.id)
    t.match(trial, { kind: 'agent', opensDraft: true }, 'the agent itself is tried')
    await hand.press(button(drawer, 'Publish'))
    await drawer.getByText('Published', { exact: true }).waitFor()

    await hand.write(drawer.getByLabel('Persona'), 'You are a polite clerk.')
    await hand.press(button(drawer, 'Save as a draft'))
    await drawer.getByText('Changes in the draft').waitFor()
    await look('agent')
    await hand.press(button(drawer, 'Publish'))
    await drawer.getByText('Changes in the draft').waitFor({ state: 'detached' })
    await hand.press(button(drawer, 'Close'))
    await row(page, 'Clerk').getByText('Published', { exact: true }).waitFor()
    t.match(await database.agents.list(account.id), [{ file: { persona: 'You are a polite clerk.' } }])
    await hand.press(link(page, 'Members'))
    await heading(page, 'Members').waitFor()
  })
})
