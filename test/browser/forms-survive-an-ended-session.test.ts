/** A session ends while a form is filled in: a sign-in over the page sends what was typed. Every form of the console. */
import { Secret, TOTP } from 'otpauth'
import type { ElementHandle, Locator, Page } from 'playwright-core'
import t from 'tap'
import { ONE_CREDIT } from '../../schemas/money.ts'
import { openPasswords } from '../../src/identity/passwords.ts'
import { demonstration } from '../end-to-end/media/support.ts'
import { openShop, payAt } from '../end-to-end/payments/support.ts'
import { post } from '../end-to-end/support.ts'
import { inspectPage, withPage } from '../support/browser.ts'
import { connectTo } from '../support/connections.ts'
import { startMailServer } from '../support/mail-server.ts'
import { type LentService, startService } from '../support/service.ts'
import { zipOf } from '../support/zip.ts'
import { AGENT, button, callsInLog, newOrganization, row, signIn } from './support.ts'

const PASSWORD = 'four words make one'

interface Form {
  readonly path: string
  /** What opens it, one after the other. */
  readonly open?: readonly ((page: Page) => Locator)[]
  /** The name of its dialog; without one it is in the page. */
  readonly dialog?: string | RegExp
  /** What is typed, chosen or ticked, by its label. */
  readonly fill: Readonly<Record<string, string | true>>
  /** What else is done before it is sent. */
  readonly more?: (page: Page) => Promise<unknown>
  readonly submit: string
  /** The question that it asks first: the name of its dialog, and the button. */
  readonly asks?: readonly [dialog: string | RegExp, submit: string]
  /** Shown once it is sent: a text, or another. */
  readonly done: string | ((page: Page) => Locator)
}

const press =
  (name: string, within: (page: Page) => Page | Locator = (page) => page) =>
  (page: Page): Locator =>
    button(within(page), name).first()
const inRow = (text: string) => (page: Page) => row(page, text).first()
const inDialog = (name: string | RegExp) => (page: Page) => page.getByRole('dialog', { name })
const isDone = (name: string | RegExp) => (page: Page) => button(inDialog(name)(page), 'Done')

async function fillIn(field: Locator, value: string | true): Promise<void> {
  await field.waitFor()
  if (value === true) return field.check()
  const isList = (await field.and(field.page().locator('select')).count()) > 0
  await (isList ? field.selectOption(value) : field.fill(value))
}

const API = '**/api/**'

/** Presses what sends a form, and ends the session before the service gets the request. */
async function pressExpired(page: Page, send: Locator, end: () => Promise<unknown>): Promise<void> {
  let hasEnded = false
  await page.route(API, async (route) => {
    if (!hasEnded && route.request().method() !== 'GET') {
      hasEnded = true
      await end()
    }
    await route.fallback()
  })
  await send.click()
  await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor()
}

/** Signs in again in the dialog over the page. @param code of the second factor, if the user has one */
async function signInAgain(page: Page, code?: string): Promise<void> {
  await page.unroute(API)
  const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
  await dialog.getByLabel('Password').fill(PASSWORD)
  await button(dialog, 'Sign in').click()
  if (code !== undefined) {
    await dialog.getByLabel('One-time code').fill(code)
    await button(dialog, 'Sign in').click()
  }
  await dialog.waitFor({ state: 'detached' })
}

async function openSession(service: LentService, page: Page, name: string, role?: 'operator') {
  const user = await signIn(service, page, { name, ...(role && { role }) })
  await service.database.signIn.setPassword(user.id, await openPasswords().hash(PASSWORD))
  return { ...user, end: () => service.database.sessions.end(user.id, { allBut: null }) }
}

/** Fills in a form, ends the session, sends the form, signs in again, and waits until it is sent. */
async function sendExpired(
  page: Page,
  base: string,
  form: Form,
  end: () => Promise<unknown>,
  look?: () => Promise<void>,
): Promise<string[]> {
  const { path, open = [], dialog, fill, more, submit, asks, done } = form
  await page.goto(`${base}/console${path}`)
  for (const find of open) await find(page).click()
  const place = dialog === undefined ? page.locator('main') : inDialog(dialog)(page)
  // Not locators: the dialog of the sign-in hides the form from them.
  const fields: [label: string, value: string | true, ElementHandle][] = []
  for (const [label, value] of Object.entries(fill)) {
    const field = place.getByLabel(label, { exact: true }).first()
    await fillIn(field, value)
    fields.push([label, value, (await field.elementHandle())!])
  }
  await more?.(page)
  const send = button(place, submit).last()
  if (asks === undefined) await pressExpired(page, send, end)
  else {
    await send.click()
    const question = inDialog(asks[0])(page)
    const typed = question.getByRole('textbox')
    await button(question, asks[1]).waitFor()
    if ((await typed.count()) > 0) await typed.fill(Object.values(fill)[0] as string)
    await pressExpired(page, button(question, asks[1]), end)
  }
  await look?.()
  const lost: string[] = []
  for (const [label, value, field] of fields)
    if ((value === true ? await field.isChecked() : await field.inputValue()) !== value)
      lost.push(`${path} ${submit}: ${label}`)
  await signInAgain(page)
  await (typeof done === 'string' ? page.getByText(done).first() : done(page).first()).waitFor()
  return lost
}

/** The forms of an organization's pages. */
const listOwnForms = (
  id: string,
  of: Readonly<Record<'key' | 'rotated' | 'agent' | 'base', string>>,
): readonly Form[] => [
  {
    path: `/keys?create=true&account=${id}`,
    dialog: 'Create a key',
    fill: { Name: 'typed', 'Requests per minute': '60' },
    submit: 'Create',
    done: isDone('typed'),
  },
  {
    path: `/keys?key=${of.key}&account=${id}`,
    dialog: 'films',
    fill: { Name: 'renamed', 'Concurrent calls': '3' },
    submit: 'Save',
    done: 'Key changed',
  },
  {
    path: `/keys?key=${of.rotated}&account=${id}`,
    dialog: 'old',
    fill: { 'Keep the old secret after the new one is first used': '3600' },
    submit: 'Rotate',
    done: (page) => page.getByRole('dialog').locator('pre'),
  },
  {
    path: `/billing?account=${id}`,
    fill: { 'Notify when the balance is low': true, Below: '1000' },
    submit: 'Save',
    done: 'Alert changed',
  },
  {
    path: `/billing?account=${id}`,
    open: [press('Set a budget')],
    dialog: 'Set a budget',
    fill: { 'Amount in credits': '50' },
    submit: 'Save',
    done: 'Budget set',
  },
  {
    path: `/webhooks?account=${id}`,
    open: [press('Add an endpoint')],
    dialog: 'Add an endpoint',
    fill: { Address: 'https://example.com/hook', Description: 'typed' },
    submit: 'Add',
    done: inDialog('Secret of the endpoint'),
  },
  {
    path: `/webhooks?account=${id}`,
    open: [press('Edit', inRow('example.com/hook'))],
    dialog: 'Edit the endpoint',
    fill: { Description: 'edited' },
    submit: 'Save',
    done: 'edited',
  },
  {
    path: `/tokens?account=${id}`,
    open: [press('Create a token')],
    dialog: 'Create a token',
    fill: { Name: 'robot' },
    submit: 'Create',
    done: inDialog('robot'),
  },
  {
    path: `/agents?account=${id}`,
    open: [press('Create an agent')],
    dialog: 'Create an agent',
    fill: { Name: 'Scribe', Persona: 'A scribe.' },
    submit: 'Create',
    done: inDialog('Scribe'),
  },
  {
    path: `/agents?agent=${of.agent}&account=${id}`,
    dialog: AGENT.name,
    fill: { Persona: 'Another.', Temperature: '0.5' },
    submit: 'Save as a draft',
    done: 'Draft saved',
  },
  {
    path: `/agents?agent=${of.agent}&account=${id}`,
    open: [press('Publish', inDialog(AGENT.name)), press('Publish now')],
    dialog: `Publish ${AGENT.name}`,
    fill: { Name: 'bot', 'Spend cap in credits': '50' },
    submit: 'Create its key',
    done: isDone(`Publish ${AGENT.name}`),
  },
  {
    path: `/members?account=${id}`,
    open: [press('Invite a member')],
    dialog: 'Invite a member',
    fill: { Email: 'new@example.com', Role: 'admin' },
    submit: 'Create the link',
    done: isDone('Invite a member'),
  },
  {
    path: `/members?account=${id}`,
    open: [press('Issue the key', inRow('wanted'))],
    dialog: 'Issue wanted',
    fill: { 'Spend cap in credits': '50', 'Requests per minute': '60' },
    submit: 'Issue the key',
    done: isDone('Issue wanted'),
  },
  {
    path: `/knowledge?account=${id}`,
    open: [press('Create a knowledge base')],
    dialog: 'Create a knowledge base',
    fill: { Name: 'Handbook' },
    submit: 'Create',
    done: (page) => page.getByRole('heading', { name: 'Handbook' }),
  },
  {
    path: `/knowledge?base=${of.base}&account=${id}`,
    fill: { 'Grant to': of.agent },
    submit: 'Grant',
    done: 'Access granted',
  },
  {
    path: `/knowledge?base=${of.base}&account=${id}`,
    open: [press('Upload')],
    dialog: 'Upload to Wiki',
    fill: { 'Remove pages whose files are gone': true },
    more: async (page) =>
      page.getByLabel('A zip, or files').setInputFiles({
        name: 'wiki.zip',
        mimeType: 'application/zip',
        buffer: Buffer.from(await zipOf({ 'a.md': '# A\n' })),
      }),
    submit: 'Upload',
    done: '1 added',
  },
  {
    path: `/calls?status=error&account=${id}`,
    open: [press('Save this view')],
    dialog: 'Save this view',
    fill: { Name: 'failures' },
    submit: 'Save',
    done: (page) => button(page, 'failures'),
  },
  {
    path: `/playground?account=${id}`,
    // What was typed is a turn of the conversation by then.
    fill: {},
    more: (page) => page.getByLabel('Message').fill('Hello!'),
    submit: 'Send',
    done: (page) => page.getByRole('region', { name: /demo|Demo/ }).first(),
  },
  {
    path: '/',
    open: [press('Create an organization')],
    dialog: 'Create an organization',
    fill: { Name: 'Second' },
    submit: 'Create',
    done: (page) => page.getByRole('heading', { name: 'Members', level: 1 }),
  },
  { path: '/profile', fill: { Name: 'Benjamin', Language: 'en' }, submit: 'Save', done: 'Saved' },
  { path: '/profile', fill: { 'New password': PASSWORD }, submit: 'Change password', done: 'Saved' },
]

/** The forms of an operator's pages. */
const listOperatorForms = (
  of: Readonly<Record<'account' | 'other' | 'calls' | 'task' | 'alarm' | 'event' | 'journal', string>>,
): readonly Form[] => [
  {
    path: `/accounts?open=${of.account}`,
    dialog: 'Account',
    fill: { 'Requests per minute': '60', 'Concurrent calls': '3' },
    submit: 'Save limits',
    done: 'Account changed',
  },
  {
    path: `/accounts?open=${of.account}`,
    dialog: 'Account',
    fill: { Credits: '5', Reason: 'typed' },
    submit: 'Book the adjustment',
    asks: [/^Adjust the balance/, 'Book it'],
    done: 'Adjustment booked',
  },
  {
    path: `/accounts?open=${of.account}`,
    dialog: 'Account',
    fill: { Credits: '2000000', Reason: 'large' },
    submit: 'Book the adjustment',
    asks: [/^Adjust the balance/, 'Book it'],
    done: 'Adjustment booked',
  },
  {
    path: `/accounts?open=${of.other}`,
    open: [press('Disable', inDialog('Account'))],
    dialog: 'Disable Other',
    fill: { 'Type Other to confirm': 'Other' },
    submit: 'Disable',
    done: 'Account changed',
  },
  {
    path: of.calls,
    open: [(page) => row(page, 'demo-chat').getByRole('link').first(), press('Refund')],
    dialog: /^Refund$/,
    fill: { Reason: 'typed' },
    submit: 'Refund',
    asks: [/^Refund .* credits$/, 'Book it'],
    done: 'Refund booked',
  },
  {
    path: `/tasks?scope=installation&task=${of.task}`,
    open: [press('End the task', inDialog('Task'))],
    dialog: 'End the task',
    fill: { As: 'failed', Reason: 'typed' },
    submit: 'End the task',
    done: 'Task ended',
  },
  {
    path: '/tasks?scope=installation',
    open: [press('Close', inRow('lost by a test'))],
    dialog: 'Close the lost submit',
    fill: { 'Cost in credits': '2.5', Reason: 'typed' },
    submit: 'Close',
    done: 'Lost submit closed',
  },
  {
    path: '/overview',
    open: [press('Acknowledge', inRow(of.alarm))],
    dialog: 'Acknowledge the alert',
    fill: { Note: 'typed' },
    submit: 'Acknowledge',
    done: 'Alert acknowledged',
  },
  {
    path: '/overview',
    open: [press('Post a note')],
    dialog: 'Post a note',
    fill: { Text: 'It is slow.', Severity: 'degraded' },
    submit: 'Post',
    done: 'Note posted',
  },
  {
    path: '/overview',
    open: [press('Update', inRow('It is slow.'))],
    dialog: 'Update the note',
    fill: { 'What is new': 'It is slower.' },
    submit: 'Add',
    done: 'Update added',
  },
  {
    path: '/overview',
    open: [press('Resolve', inRow('It is slow'))],
    dialog: 'Resolve the note',
    fill: { 'Last update': 'It is fast.' },
    submit: 'Resolve',
    done: 'Note resolved',
  },
  {
    path: '/channels',
    open: [press('Pause', inRow('simulated-images'))],
    dialog: 'Pause simulated-images',
    fill: { 'Type simulated-images to confirm': 'simulated-images' },
    submit: 'Pause',
    done: 'Channel changed',
  },
  {
    path: '/users',
    open: [press('Invite a person')],
    dialog: 'Invite a person',
    fill: { Email: 'staff@example.com' },
    submit: 'Create the link',
    done: isDone('Invite a person'),
  },
  {
    path: '/integrity',
    open: [press('Import a journal')],
    dialog: 'Import a journal',
    fill: { 'Folder on the machine of this gateway': '/nowhere/gateway-0' },
    submit: 'Import',
    done: 'has no journal that may be imported',
  },
  {
    path: '/integrity',
    open: [press('Close', inRow(of.event))],
    dialog: 'Close the event',
    fill: { Reason: 'typed' },
    submit: 'Close',
    done: 'Payment event closed',
  },
  {
    path: '/integrity',
    open: [press('Abandon', inRow(of.journal))],
    dialog: `Abandon ${of.journal}`,
    fill: { [`Type ${of.journal} to confirm`]: of.journal },
    submit: 'Abandon',
    done: 'Journal abandoned',
  },
]

t.test('forms', async (t) => {
  const service = await startService(t, {
    config: demonstration(),
    env: { TOLLGATE_ROLES: 'gateway,settler,tasks' },
  })
  const { database, baseUrl } = service
  const walk = async (page: Page, forms: readonly Form[], end: () => Promise<unknown>) => {
    const lost: string[] = []
    for (const form of forms) {
      const { path, submit } = form
      try {
        lost.push(...(await sendExpired(page, baseUrl, form, end)))
      } catch (error) {
        throw new Error(`${path} ${submit}: ${(error as Error).message}`, { cause: error })
      }
    }
    return lost
  }

  await t.test('of an organization and of its owner', (t) =>
    withPage(t, 'own forms', async (page) => {
      const user = await openSession(service, page, 'Ben')
      const { id } = await newOrganization(service, { name: 'Forms', credit: 1_000n * ONE_CREDIT }, user)
      const [key, rotated] = await Promise.all(
        ['films', 'old'].map((name) => database.keys.create({ accountId: id, name })),
      )
      const agent = await database.agents.create(id, { ...AGENT, model: 'demo-chat' })
      const base = await database.knowledge.createBase(id, 'Wiki')
      const { account } = await database.accounts.create({ name: 'Max', credit: 0n })
      await database.organizations.putMember(id, account.id, 'member')
      await database.keyRequests.create({ organizationId: id, memberId: account.id, name: 'wanted' })
      const of = { key: key!.key.id, rotated: rotated!.key.id, agent: agent.id, base: base.id }
      t.same(await walk(page, listOwnForms(id, of), user.end), [], 'what is typed stays')
    }),
  )

  await t.test('of a member', (t) =>
    withPage(t, 'forms of a member', async (page) => {
      const user = await openSession(service, page, 'Mia')
      const { id } = await newOrganization(service, { name: 'Asks', role: 'member' }, user)
      const ask: Form = {
        path: `/?account=${id}`,
        open: [press('Request a key')],
        dialog: 'Request a key',
        fill: { Name: 'robot', Note: 'typed' },
        submit: 'Request a key',
        done: 'Request sent',
      }
      const look = () => inspectPage(t, page, 'session-ended')
      t.same(await sendExpired(page, baseUrl, ask, user.end, look), [])
    }),
  )

  await t.test('of an operator', (t) =>
    withPage(t, 'forms of an operator', async (page) => {
      const user = await openSession(service, page, 'Olga', 'operator')
      const { accountId, key } = await service.newKey('1000', { accountLogs: true })
      const call = { model: 'demo-chat', messages: [{ role: 'user', content: 'Hello!' }] }
      await (await service.chat(key, call)).text()
      await callsInLog(service, key, 1)
      const film = { model: 'demo-video', prompt: 'A fox [simulate: queue=600000]', duration: 6 }
      const task = (await (await post(service, key, '/v1/videos/generations', film)).json()) as { id: string }
      const { account: other } = await database.accounts.create({ name: 'Other', credit: 0n })
      await database.alerts.recordBreakers([{ channelId: 'alarm', isOpen: true }])
      const sql = connectTo(t, service.engines.databaseUrl)
      await sql`INSERT INTO payment_events (id, type, refusal, created_at) VALUES ('evt_form', 'charge.refunded', 'of a test', now())`
      await sql`
        INSERT INTO journals (id, node, directory, seen_at, open_calls, open_estimate, unbooked_calls, unbooked_cost)
        VALUES ('jrn_form', 'machine-seven', '/data/journal/gateway-0', now() - interval '6 minutes', 1, 500, 12, 1500000000)`
      await sql`
        INSERT INTO lost_submits (task_id, account_id, request_id, kind, model, lost_at, reason)
        VALUES ('vid_lost', ${accountId}, 'req_lost', 'video', 'demo-video', ${Date.now()}, 'lost by a test')`
      const of = {
        account: accountId,
        other: other.id,
        calls: `/calls?account=${accountId}&period=all`,
        task: task.id,
        alarm: 'alarm',
        event: 'evt_form',
        journal: 'jrn_form',
      }
      t.same(await walk(page, listOperatorForms(of), user.end), [])

      const yaml = page.locator('main textarea')
      await page.goto(`${baseUrl}/console/catalog`)
      await yaml.waitFor()
      await yaml.fill(`# typed\n${await yaml.inputValue()}`)
      await pressExpired(page, button(page, 'Check'), user.end)
      await signInAgain(page)
      t.match(await yaml.inputValue(), /^# typed\n/)
      await button(page, 'Apply').and(page.locator(':enabled')).waitFor()

      // Editing an entry in its form changes the text and finds the line of the entry.
      const open = async () => {
        await page.goto(`${baseUrl}/console/catalog`)
        await button(row(page, 'demo-chat').first(), 'Edit').click()
        return page.getByRole('dialog', { name: 'demo-chat' })
      }
      const form = await open()
      await form.getByLabel('Display name', { exact: true }).fill('Typed')
      const field = (await form.getByLabel('Display name', { exact: true }).elementHandle())!
      await pressExpired(page, button(form, 'Change the text'), user.end)
      t.equal(await field.inputValue(), 'Typed')
      await signInAgain(page)
      await form.waitFor({ state: 'detached' })
      t.match(await yaml.inputValue(), /^ +display_name: Typed$/m)
      const add = button(page.locator('main'), 'Add a model')
      await add.click()
      const added = page.getByRole('dialog', { name: 'Add: Model' })
      await added.getByLabel('Id', { exact: true }).fill('typed-model')
      await pressExpired(page, button(added, 'Change the text'), user.end)
      await signInAgain(page)
      await added.waitFor({ state: 'detached' })
      t.match(await yaml.inputValue(), /id: typed-model/)
    }),
  )
})

t.test('forms of a profile', async (t) => {
  const mails = await startMailServer(t)
  const service = await startService(t, {
    config: demonstration(),
    env: { SMTP_URL: mails.url, SMTP_FROM: 'Tollgate <noreply@example.com>' },
  })
  const { baseUrl } = service
  await withPage(t, 'forms of a profile', async (page) => {
    const user = await openSession(service, page, 'Theo')
    const form: Form = {
      path: '/profile',
      fill: { 'New address': 'theo-again@example.com' },
      submit: 'Send the link',
      done: 'A link is on its way to theo-again@example.com.',
    }
    t.same(await sendExpired(page, baseUrl, form, user.end), [])

    // The code still confirms the secret that the app has scanned.
    await pressExpired(page, button(page, 'Set up one-time codes'), user.end)
    await signInAgain(page)
    const dialog = page.getByRole('dialog', { name: 'Set up one-time codes' })
    const secret = ((await dialog.locator('pre').textContent()) ?? '').replaceAll(/\s/g, '')
    const app = new TOTP({ secret: Secret.fromBase32(secret) })
    await dialog.getByLabel('One-time code').fill(app.generate())
    await pressExpired(page, button(dialog, 'Confirm'), user.end)
    await signInAgain(page)
    const shown = page.getByRole('dialog', { name: 'Recovery codes' })
    const codes = ((await shown.locator('pre').textContent()) ?? '').split('\n')
    await button(shown, 'Done').click()
    await page.getByText('Recovery codes left: 10').waitFor()

    // From here on the dialog also asks for the second factor.
    await page.getByLabel('New address').fill('theo-third@example.com')
    await pressExpired(page, button(page, 'Send the link'), user.end)
    await signInAgain(page, codes[0])
    await page.getByText('A link is on its way to theo-third@example.com.').waitFor()
    await pressExpired(page, button(page, 'New recovery codes'), user.end)
    await signInAgain(page, codes[1])
    await shown.waitFor()
    const [next = ''] = ((await shown.locator('pre').textContent()) ?? '').split('\n')
    await button(shown, 'Done').click()
    await button(page, 'Switch off').click()
    const question = page.getByRole('dialog', { name: 'Switch off one-time codes' })
    await pressExpired(page, button(question, 'Switch off'), user.end)
    await signInAgain(page, next)
    await button(page, 'Set up one-time codes').waitFor()
  })
})

t.test('forms of payments', async (t) => {
  const { service, newCustomer } = await openShop(t)
  await withPage(t, 'forms of payments', async (page) => {
    const user = await openSession(service, page, 'Dora', 'operator')
    const { client, accountId } = await newCustomer()
    const { body } = await client.send('POST', '/payments', {
      account_id: accountId,
      credits: '500',
      save_card: false,
    })
    await payAt((body as { url: string }).url)
    await page.goto(`${service.baseUrl}/console/payments`)
    await row(page, 'Shopper').getByText('Paid', { exact: true }).waitFor()
    const forms: readonly Form[] = [
      {
        path: '/payments',
        open: [press('Refund', inRow('Shopper'))],
        dialog: /^Refund the payment of/,
        fill: { 'Amount in USD': '2.00', Reason: 'typed' },
        submit: 'Refund to the card',
        asks: [/^Refund 2.00 USD/, 'Refund to the card'],
        done: 'Payment refunded',
      },
      {
        path: '/billing',
        fill: { 'When the balance is below': '100', 'Credits to add': '600' },
        submit: 'Save automatic top-up',
        done: 'Automatic top-up saved',
      },
      {
        path: '/billing',
        fill: { Credits: '600' },
        submit: 'Go to payment',
        done: (one) => one.getByLabel('Card number'),
      },
    ]
    for (const form of forms) t.same(await sendExpired(page, service.baseUrl, form, user.end), [])
  })
})
