%% OTP's megaco as the other side of a measurement: reads messages out of files, then decodes or encodes all of them so many times, as it is told line by
%% line, and answers with nanoseconds per message.
-module(megaco_beside).
-export([main/1]).

%% Files of messages, compact and pretty, in that order.
main([Compact, Pretty]) ->
    Sets = [{"compact", megaco_compact_text_encoder, load(Compact)}, {"pretty", megaco_pretty_text_encoder, load(Pretty)}],
    {ok, Port} = start_flex(),
    io:format("ready~n"),
    serve(Sets, [{flex, Port}]).

%% Its fast scanner, a driver in C.
start_flex() ->
    case megaco_flex_scanner:start() of
        {ok, Port} -> {ok, Port};
        Other -> Other
    end.

load(Folder) ->
    {ok, Names} = file:list_dir(Folder),
    [begin {ok, Text} = file:read_file(filename:join(Folder, Name)), Text end || Name <- lists:sort(Names)].

serve(Sets, Flex) ->
    case io:get_line("") of
        eof -> halt(0);
        Line ->
            [What, Style, Rounds] = string:lexemes(string:trim(Line), " "),
            {_, Module, Texts} = lists:keyfind(Style, 1, Sets),
            Count = list_to_integer(Rounds),
            Read = [{Text, megaco_compact_text_encoder:decode_message(Flex, 1, Text)} || Text <- Texts],
            %% Both sides do what both can.
            Both = [{Text, Message} || {Text, {ok, Message}} <- Read],
            Work = case What of
                "decode" -> fun() -> [{ok, _} = megaco_compact_text_encoder:decode_message(Flex, 1, Text) || {Text, _} <- Both] end;
                "encode" -> fun() -> [{ok, _} = Module:encode_message([], 1, Message) || {_, Message} <- Both] end
            end,
            Work(),
            {Micros, _} = timer:tc(fun() -> repeat(Work, Count) end),
            io:format("~b ~b~n", [length(Both), round(Micros * 1000 / Count / length(Both))]),
            serve(Sets, Flex)
    end.

repeat(_, 0) -> ok;
repeat(Work, Count) -> Work(), repeat(Work, Count - 1).
