/** A question to an agent as it is edited: its model, persona and temperature, without its knowledge and tools. */
import { useLingui } from '@lingui/react'
import { type FormEvent, useState } from 'react'
import type { AgentFile } from '../../../../schemas/accounts/agent.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Field } from '../../ui/field.tsx'
import { ErrorState, Panel } from '../../ui/states.tsx'
import { requestBody, type Settings } from '../playground/request.ts'
import { useRun } from '../playground/use-run.ts'

export function TryAgent({ file, accountId }: { readonly file: AgentFile; readonly accountId: string }) {
  useLingui()
  const [question, setQuestion] = useState('')
  const { run, start, stop } = useRun(accountId)
  const isRunning = run?.isRunning === true
  const ask = (event: FormEvent) => {
    event.preventDefault()
    const settings: Settings = {
      model: file.model,
      system: file.persona,
      stream: true,
      temperature: file.temperature,
      topP: null,
      maxTokens: null,
      reasoningEffort: null,
      tools: '',
    }
    start(settings, requestBody(settings, [{ role: 'user', text: question }]))
  }
  return (
    <Panel title={t('Try it')}>
      <form onSubmit={ask} className="flex flex-wrap items-end gap-2 p-4">
        <div className="min-w-40 flex-1">
          <Field
            label={t('Question')}
            hint={t(
              'An ordinary call with an ordinary charge: model, persona and temperature, without knowledge and tools.',
            )}
            required
            value={question}
            onChange={({ target }) => setQuestion(target.value)}
          />
        </div>
        {isRunning ? <Button onClick={stop}>{t('Stop')}</Button> : <Button type="submit">{t('Send')}</Button>}
      </form>
      {run && (
        <p
          aria-live="polite"
          aria-busy={isRunning}
          className="whitespace-pre-wrap break-words border-line border-t p-4"
        >
          {run.answer.text}
          {run.answer.error && <span className="text-bad">{run.answer.error}</span>}
        </p>
      )}
      {run?.error && <ErrorState error={run.error} />}
    </Panel>
  )
}
