/** A customer plays a film that a task made, and cancels a task that is still queued. */
import t from 'tap'
import { demonstration } from '../end-to-end/media/support.ts'
import { post } from '../end-to-end/support.ts'
import { until } from '../support/eventually.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, heading, link, row, signIn, withEachHand } from './support.ts'

t.test('tasks', async (t) => {
  const service = await borrowService(t, demonstration())
  await withEachHand(t, 'tasks', async (t, { hand, page, look }) => {
    const user = await signIn(service, page, { name: 'Tess' })
    const { raw } = await service.database.keys.create({ accountId: user.accountId, name: 'films' })
    const submit = async (directives: string): Promise<string> => {
      const film = { model: 'demo-video', prompt: `A fox [simulate: ${directives}]`, duration: 6 }
      const response = await post(service, raw, '/v1/videos/generations', film)
      const body = (await response.json()) as { id: string }
      t.ok(response.ok, JSON.stringify(body))
      return body.id
    }
    const stateOf = async (id: string) => (await service.database.tasks.read([id]))[0]?.state
    const made = await submit('queue=10,delay=10')
    await until('the film is made', async () => (await stateOf(made)) === 'succeeded')
    const queued = await submit('queue=60000')
    await until('a task is queued', async () => (await stateOf(queued)) === 'queued')

    await hand.press(link(page, 'Tasks'))
    await heading(page, 'Tasks').waitFor()
    await row(page, made).getByText('Succeeded', { exact: true }).waitFor()
    await look('tasks')
    await hand.press(page.getByRole('link', { name: made }))
    const drawer = page.getByRole('dialog', { name: 'Task' })
    await drawer.locator('video').waitFor()
    t.match(await drawer.getByRole('link', { name: 'Download' }).getAttribute('href'), /^\/files\/videos\//)
    await look('task')
    await hand.press(button(drawer, 'Close'))

    await hand.press(page.getByRole('link', { name: queued }))
    await hand.press(button(drawer, 'Cancel the task'))
    const question = page.getByRole('dialog', { name: 'Cancel the task' })
    await hand.press(button(question, 'Cancel the task'))
    await drawer.getByText('Cancelled', { exact: true }).waitFor()
    t.equal(await stateOf(queued), 'cancelled')
    await hand.press(button(drawer, 'Close'))

    const others = [await submit('queue=60000'), await submit('queue=60000')]
    for (const id of others) await hand.press(page.getByRole('checkbox', { name: `Select ${id}` }))
    // A task that has ended does not change.
    await hand.press(page.getByRole('checkbox', { name: `Select ${made}` }))
    const selected = page.getByRole('region', { name: 'Selected rows' })
    await selected.getByText('3 selected').waitFor()
    await look('tasks-selected')
    await hand.press(button(selected, 'Cancel the tasks'))
    const both = page.getByRole('dialog', { name: 'Cancel 2 tasks' })
    await hand.press(button(both, 'Cancel the tasks'))
    await page.getByText('Tasks cancelled').waitFor()
    for (const id of others) t.equal(await stateOf(id), 'cancelled')
    t.equal(await stateOf(made), 'succeeded')
  })
})
