/** The owner of an organization writes an agent, tries it, publishes it, and edits it as a draft. */
import t from 'tap'
import type { Agent } from '../../schemas/accounts/agent.ts'
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
    const publish = page.getByRole('dialog', { name: 'Publish Clerk' })
    await hand.press(button(publish, 'Publish now'))
    await publish.getByText('The agent is published.').waitFor()
    await hand.write(publish.getByLabel('Name'), 'website')
    await hand.write(publish.getByLabel('Spend cap in credits'), '5000')
    await look('agent-key')
    await hand.press(button(publish, 'Create its key'))
    await publish.getByText('Waiting for your first call').waitFor()
    const secret = (await publish.locator('pre').first().textContent()) ?? ''
    const asked = { model: 'fast', messages: [{ role: 'user', content: 'Hello!' }], max_tokens: 5 }
    t.equal((await service.chat(secret, asked)).status, 200, 'its snippet works')
    await publish.getByText('Your first call has arrived.').waitFor()
    await look('agent-published')
    await hand.press(button(publish, 'Done'))
    await drawer.getByText('Published', { exact: true }).waitFor()

    await hand.write(drawer.getByLabel('Persona'), 'You are a polite clerk.')
    await hand.press(button(drawer, 'Save as a draft'))
    await drawer.getByText('Changes in the draft').waitFor()
    await look('agent')
    await hand.press(button(drawer, 'Publish'))
    await hand.press(button(publish, 'Publish now'))
    await hand.press(button(publish, 'Not now'))
    await drawer.getByText('Changes in the draft').waitFor({ state: 'detached' })
    await hand.press(button(drawer, 'Close'))
    await row(page, 'Clerk').getByText('Published', { exact: true }).waitFor()
    const [agent] = (await database.agents.list(account.id)) as [Agent]
    t.match(agent, { file: { persona: 'You are a polite clerk.' } })
    const broken = { ...agent.file, model: 'absent' }
    await database.agents.saveDraft(agent.id, broken)
    await page.reload()
    await hand.press(page.getByRole('link', { name: 'Clerk', exact: true }))
    await hand.press(button(drawer, 'Publish'))
    await publish.getByText('every call would be refused').waitFor()
    await publish.getByText('no model "absent"').waitFor()
    t.equal(await button(publish, 'Publish now').count(), 0)
    await hand.press(button(publish, 'Done'))
    await hand.press(button(drawer, 'Close'))
    await hand.press(link(page, 'Members'))
    await heading(page, 'Members').waitFor()
  })
})
