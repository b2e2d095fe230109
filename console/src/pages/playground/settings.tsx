/** The settings of a call: model, instructions, parameters, tools. */
import type { PublicModel } from '../../../../schemas/accounts/models.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { CheckField, NumberField, SelectField, TextAreaField } from '../../ui/form.tsx'
import { readTools, type Settings } from './request.ts'

const EXAMPLE_TOOLS = '[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}]'

interface SettingsProps {
  readonly settings: Settings & { readonly compared: string }
  readonly models: readonly PublicModel[]
  onChange(changes: Partial<Settings & { readonly compared: string }>): void
}

export function SettingsPanel({ settings, models, onChange }: SettingsProps) {
  const change = useChangeSearch()
  const { problem } = readTools(settings.tools)
  const problems = {
    not_json: t('This is not JSON.'),
    not_a_list: t('Tools are a JSON list.'),
    no_function_name: t('Each tool needs a function with a name.'),
  }
  const number = (name: 'temperature' | 'topP' | 'maxTokens') => ({
    value: String(settings[name] ?? ''),
    onText: (text: string) =>
      onChange({ [name]: text === '' || Number.isNaN(Number(text)) ? null : Number(text) }),
  })
  return (
    <section
      aria-label={t('Settings')}
      className="flex flex-col gap-4 rounded-lg border border-line bg-surface p-4"
    >
      <SelectField
        label={t('Model')}
        value={settings.model}
        onText={(text) => change({ model: text }, { isReplaced: true })}
        options={models.map(({ id, display_name }) => [id, display_name] as const)}
      />
      <SelectField
        label={t('Compare with')}
        hint={settings.tools === '' ? undefined : t('Only one model can answer with tools.')}
        disabled={settings.tools !== ''}
        value={settings.compared}
        onText={(compared) => onChange({ compared })}
        options={[
          ['', t('No other model')],
          ...models.map(({ id, display_name }) => [id, display_name] as const),
        ]}
      />
      <TextAreaField
        label={t('Instructions')}
        rows={3}
        value={settings.system}
        onText={(text) => onChange({ system: text })}
      />
      <div className="grid grid-cols-2 gap-3">
        <NumberField label={t('Temperature')} min={0} max={2} decimals={2} {...number('temperature')} />
        <NumberField label={t('Top P')} min={0} max={1} decimals={2} {...number('topP')} />
        <NumberField label={t('Max output tokens')} min={1} {...number('maxTokens')} />
        <SelectField
          label={t('Reasoning effort')}
          value={settings.reasoningEffort ?? ''}
          onText={(value) =>
            onChange({ reasoningEffort: value === '' ? null : (value as 'low' | 'medium' | 'high') })
          }
          options={[
            ['', t('Default')],
            ['low', t('Low')],
            ['medium', t('Medium')],
            ['high', t('High')],
          ]}
        />
      </div>
      <CheckField
        label={t('Stream the answer')}
        checked={settings.stream}
        onCheck={(isChecked) => onChange({ stream: isChecked })}
      />
      <TextAreaField
        label={t('Tools, as JSON')}
        rows={4}
        isCode
        value={settings.tools}
        placeholder={EXAMPLE_TOOLS}
        error={problem === null ? null : problems[problem]}
        onText={(text) => onChange({ tools: text })}
      />
    </section>
  )
}
